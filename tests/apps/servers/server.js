// One small server for each way in which a server's address can be hard to find. TRICK is set by the test.
const http = require('http');
const fs = require('fs');

const trick = fs.readFileSync(`${__dirname}/trick.txt`, 'utf8').trim();
const page = `<!doctype html><title>${trick}</title><h1>served by ${trick}</h1>`;
const server = http.createServer((request, response) => {
  response.setHeader('Content-Type', 'text/html');
  response.end(page);
});
const say = (text) => console.log(text);

const tricks = {
  'random-port': () => server.listen(0, '127.0.0.1', () => say('listening')),
  'ipv4-only': () => server.listen(4321, '127.0.0.1', () => say('ready on http://my-machine.local:4321')),
  'ipv6-only': () => server.listen(0, '::1', () => say('listening')),
  'coloured-banner': () =>
    server.listen(5177, () => say('\u001b[32m➜\u001b[0m  \u001b[1mLocal\u001b[0m: http://localhost:\u001b[1m5177\u001b[0m/')),
  'next-port': () => {
    const taken = http.createServer((_, response) => response.end()).listen(3000, '0.0.0.0', () => {
      server.on('error', () => server.listen(3001)).listen(3000, '0.0.0.0');
    });
    taken.unref();
  },
  silent: () => server.listen(process.env.PORT),
  late: () => setTimeout(() => server.listen(3000), 8000),
  api: () => {
    http.createServer((_, response) => response.end('{"ok":true}')).listen(3000);
    setTimeout(() => server.listen(8123), 500);
  },
  'picky-host': () => http.createServer((request, response) => {
    // As Vite's servers do: a name they do not know is refused before anything else.
    response.setHeader('Content-Type', 'text/html');
    if (request.headers.host === '127.0.0.1:3000') return response.end(page);
    response.statusCode = 403;
    response.end(`Blocked request. This host ("${request.headers.host}") is not allowed.`);
  }).listen(3000),
  'refuses-hosts': () => http.createServer((request, response) => {
    response.statusCode = 403;
    response.end(`Blocked request. This host ("${request.headers.host}") is not allowed.`);
  }).listen(3000),
  never: () => {
    say('warming up for ever');
    setInterval(() => {}, 1000);
  },
  'hanging-neighbours': () => {
    for (const port of [2999, 3000, 3002]) require('net').createServer(() => {}).listen(port);
    setTimeout(() => server.listen(3001), 300);
  },
  broken: () => http.createServer((_, response) => { response.statusCode = 500; response.end('boom'); }).listen(3000),
  dies: () => {
    console.error('cannot find the database');
    process.exit(3);
  },
};
tricks[trick]();
