// Serves the pages once it has tried what it can; /attacks tells what came of it in each phase.
const fs = require('fs');
const http = require('http');
const { attack } = require('./attack.js');

const hosts = fs.existsSync(`${__dirname}/hosts.json`) ? JSON.parse(fs.readFileSync(`${__dirname}/hosts.json`)) : [];
const attacks = () => {
  const names = fs.readdirSync(__dirname).filter((name) => name.startsWith('attack-'));
  return Object.fromEntries(names.map((name) => [name.slice(7, -5), JSON.parse(fs.readFileSync(`${__dirname}/${name}`))]));
};
attack('serve', hosts).then(() => http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  const file = `${__dirname}/pages${path === '/' ? '/index.html' : path}`;
  if (path === '/attacks') {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(attacks()));
  } else if (fs.existsSync(file)) {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.end(fs.readFileSync(file));
  } else {
    response.writeHead(404).end();
  }
}).listen(process.env.PORT));
