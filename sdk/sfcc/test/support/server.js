'use strict';

// The real server with presets/soft-ban, over TLS with a certificate of its own; ended by its
// process id.
const { execFileSync, spawn } = require('node:child_process');
const { mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:net');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const BINARY = process.env.CATRACA_BIN ?? 'catraca';
const REPOSITORY = process.env.CATRACA_REPOSITORY ?? join(__dirname, '../../../..');

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function makeCertificate(folder) {
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
    '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', paths.key,
    '-out', paths.cert];
  execFileSync('openssl', args, { stdio: 'ignore' });
  return paths;
}

function makeKey(role, site) {
  const args = ['keygen', '--role', role, '--name', `${role}-${site}`, '--namespace', site];
  const printed = execFileSync(BINARY, args, { encoding: 'utf8' });
  const table = printed.slice(printed.indexOf('[[auth.key]]'));
  return { key: printed.split('\n', 1)[0], table: table.trim() };
}

async function launch(file, port) {
  const args = ['serve', '--listen', `127.0.0.1:${port}`, '--config', file];
  const env = Object.assign({ PROXY_LISTEN: '127.0.0.1:0' }, process.env);
  const child = spawn(BINARY, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  let log = '';
  child.stderr.on('data', (chunk) => { log += chunk; });
  await new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`catraca serve ended with ${code}: ${log}`)));
    child.stdout.once('data', resolve);
  });
  process.once('exit', () => child.kill('SIGKILL'));
  child.stdout.resume();
  return child;
}

async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** `keys[site][role]`, for the sites `RefArch` and `Outlet`. */
async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'catraca-sfcc-'));
  const certificate = makeCertificate(folder);
  const keys = {};
  let text = readFileSync(join(REPOSITORY, 'presets/soft-ban/catalog.toml'), 'utf8');
  const tls = `tls_cert = "${certificate.cert}"\ntls_key = "${certificate.key}"`;
  text = text.replace('[server]\n', `[server]\n${tls}\n`);
  for (const site of ['RefArch', 'Outlet']) {
    keys[site] = {};
    for (const role of ['check', 'support', 'admin']) {
      const { key, table } = makeKey(role, site);
      keys[site][role] = key;
      text += `\n${table}\n`;
    }
  }
  const file = join(folder, 'catalog.toml');
  writeFileSync(file, text);
  const port = await freePort();
  let child = await launch(file, port);
  return {
    url: `https://127.0.0.1:${port}`,
    ca: readFileSync(certificate.cert, 'utf8'),
    keys,
    kill: () => end(child),
    restart: async () => { child = await launch(file, port); },
    stop: async () => {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/** Settings of the service for a platform of this site. */
function credentialOf(server, { site = 'RefArch', role = 'admin', url = server.url } = {}) {
  const credential = { url, user: 'catraca', password: server.keys[site][role] };
  return { 'catraca.http': { credential, ca: server.ca, timeoutMs: 5000 } };
}

module.exports = { credentialOf, freePort, startServer };
