const show = () => { document.querySelector('#route').textContent = `route ${location.pathname}`; };
addEventListener('popstate', show);
globalThis.go = (path) => { history.pushState({}, '', path); show(); };
show();
