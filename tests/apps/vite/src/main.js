import './style.css';

const pages = { '/': 'Home', '/about': 'About' };

function render() {
  const title = pages[location.pathname] ?? `Page ${location.pathname}`;
  document.querySelector('#app').innerHTML = `<h1>${title}</h1><button>About</button>`;
  document.querySelector('button').onclick = () => {
    history.pushState(null, '', '/about');
    render();
  };
}

window.addEventListener('popstate', render);
render();
