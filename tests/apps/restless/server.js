// A page that is never at rest: it polls, listens to server-sent events and holds a web socket open.
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');

const TYPES = {
  html: 'text/html; charset=utf-8', mov: 'video/quicktime', mp4: 'video/mp4', png: 'image/png', wav: 'audio/wav',
};
let asked = 0;
const server = http.createServer((request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
    const tick = setInterval(() => response.write(`data: ${Date.now()}\n\n`), 200);
    request.on('close', () => clearInterval(tick));
    return;
  }
  if (request.url === '/poll') {
    response.end(String((asked += 1)));
    return;
  }
  const path = request.url.split('?')[0];
  const file = `${__dirname}/pages${path.endsWith('/') ? `${path}index.html` : path}`;
  if (!fs.existsSync(file)) {
    response.writeHead(404).end();
    return;
  }
  response.setHeader('Content-Type', TYPES[file.split('.').pop()]);
  response.end(fs.readFileSync(file));
});

server.on('upgrade', (request, socket) => {
  const accept = crypto.createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
    + `Sec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`);
  const tick = setInterval(() => socket.write(Buffer.from([0x81, 0x02, 0x68, 0x69])), 300);
  socket.on('error', () => {}).on('close', () => clearInterval(tick));
});

server.listen(0, '::1', () => console.log('ready'));
