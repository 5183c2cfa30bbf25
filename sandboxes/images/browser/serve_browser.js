// Serves one Chromium to a Playwright client outside the container, over /sockets/browser.sock.
//
// The Playwright server listens on a random loopback port under a secret path, because the application
// under test shares this network namespace and can try every port; the socket's folder is mounted into
// this container alone. /sockets/browser.json tells the client the path and what it is talking to.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');
const { execFileSync } = require('child_process');
const { chromium } = require('/opt/playwright-core');

const FOLDER = process.env.CDB_SOCKETS || '/sockets';
const CHROMIUM = '/usr/bin/chromium-headless-shell';
const ARGS = [
  '--use-fake-device-for-media-stream',
  '--use-fake-ui-for-media-stream',
  '--autoplay-policy=no-user-gesture-required',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-domain-reliability',
  '--disable-sync',
  '--metrics-recording-only',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-pings',
];

function serve(wsPath, chromiumSandbox) {
  return chromium.launchServer({
    executablePath: CHROMIUM, host: '127.0.0.1', port: 0, wsPath, chromiumSandbox, args: ARGS, timeout: 30000,
  });
}

async function serveSandboxedIfPossible(wsPath) {
  try {
    return { server: await serve(wsPath, true), sandbox: true, reason: '' };
  } catch (error) {
    const reason = String(error.message || error).slice(0, 2000);
    return { server: await serve(wsPath, false), sandbox: false, reason };
  }
}

function relay(port, socketPath) {
  const listener = net.createServer((outside) => {
    const inside = net.connect(port, '127.0.0.1');
    outside.setNoDelay?.(true);
    inside.setNoDelay(true);
    outside.pipe(inside);
    inside.pipe(outside);
    outside.on('error', () => inside.destroy());
    inside.on('error', () => outside.destroy());
    outside.on('close', () => inside.destroy());
    inside.on('close', () => outside.destroy());
  });
  fs.rmSync(socketPath, { force: true });
  return new Promise((resolve, reject) => {
    listener.on('error', reject);
    listener.listen(socketPath, () => {
      fs.chmodSync(socketPath, 0o666); // the client on the host may run as any user; the folder guards it
      resolve(listener);
    });
  });
}

function announce(facts) {
  const file = `${FOLDER}/browser.json`;
  fs.writeFileSync(`${file}.part`, `${JSON.stringify(facts)}\n`, { mode: 0o644 });
  fs.renameSync(`${file}.part`, file);
  process.stdout.write(`${JSON.stringify(facts)}\n`);
}

async function main() {
  const wsPath = `/${crypto.randomBytes(24).toString('hex')}`;
  const { server, sandbox, reason } = await serveSandboxedIfPossible(wsPath);
  const stop = (code) => server.kill().finally(() => process.exit(code));
  process.on('SIGTERM', () => stop(0));
  process.on('SIGINT', () => stop(0));
  server.on('close', () => process.exit(1));
  await relay(Number(new URL(server.wsEndpoint()).port), `${FOLDER}/browser.sock`);
  announce({
    schema: 'cdb.browser/1',
    wsPath,
    chromium: execFileSync(CHROMIUM, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim(),
    playwright: require('/opt/playwright-core/package.json').version,
    node: process.version,
    sandbox,
    sandboxOffBecause: reason,
    args: ARGS,
  });
}

main().catch((error) => {
  process.stderr.write(`serve_browser: ${error.stack || error}\n`);
  process.exit(1);
});
