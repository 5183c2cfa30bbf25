self.onfetch = event => event.respondWith(fetch('https://from-worker.example/'));
