// Runs the marked shell blocks of the documents against a fresh service, each page in a folder of its own.
//   CALLBOARD=<path of the binary> node --test tests/docs/examples.mjs
//
// `<!-- run -->` before a block runs it; `exit=1` and `expect="<regular expression>"` say how it ends and what it
// prints. `<!-- service: stop -->` and `<!-- service: start -->` stand for what the reader does in between,
// `<!-- check command="…" expect="…" -->` prepares or checks something unseen.
// `<!-- file: name -->` writes the block to a file. `<!-- packed-reporter -->` replaces a block that installs from the network.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { directivesOf } from './markdown.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const binary = path.resolve(process.env.CALLBOARD ?? path.join(root, 'target/debug/callboard'));
const WRITTEN_ADDRESS = 'http://localhost:3000';
const START_MS = 20_000;
const BLOCK_MS = 60_000;

// Without these the test would pass without running anything.
const REQUIRED = ['docs/quickstart.md', 'docs/operate/backup.md', 'docs/operate/upgrade.md', 'docs/guides/api.md'];
const pages = readdirSync(path.join(root, 'docs'), { recursive: true })
  .map((name) => path.posix.join('docs', name.split(path.sep).join('/')))
  .filter((name) => name.endsWith('.md') && directivesOf(path.join(root, name)).length > 0)
  .sort();

test('the pages that promise runnable blocks have some', () => {
  assert.deepEqual(REQUIRED.filter((page) => !pages.includes(page)), []);
});

const folders = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// What a reader's shell has: neither our settings nor the variables of a CI system.
function plainEnvironment(bin) {
  const kept = ['HOME', 'LANG', 'TMPDIR', 'USER', 'SSL_CERT_FILE'].filter((name) => process.env[name] !== undefined);
  return { ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), PATH: `${bin}:${process.env.PATH}`, ROOT: root };
}

class Service {
  constructor(folder, environment, port) {
    Object.assign(this, { folder, environment, port });
    this.address = `http://localhost:${port}`;
    this.log = path.join(folder, 'service.log');
  }

  async start() {
    const log = openSync(this.log, 'w');
    const process = spawn(binary, [], {
      cwd: this.folder, env: { ...this.environment, SERVICE_PORT: String(this.port) }, stdio: ['ignore', log, log],
    });
    this.process = process;
    for (const began = Date.now(); Date.now() - began < START_MS; await pause(50)) {
      assert.equal(process.exitCode, null, `the service ended while starting:\n${readFileSync(this.log, 'utf8')}`);
      if (readFileSync(this.log, 'utf8').includes('is ready')) return;
    }
    assert.fail(`the service did not start within ${START_MS} ms`);
  }

  async stop() {
    const running = this.process;
    this.process = undefined;
    if (!running || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once('exit', resolve));
    running.kill('SIGTERM');
    await ended;
  }
}

// Stands for `npm install` of the packed reporter: the same package, and the Playwright of the reporter's own tests.
function installPackedReporter(folder) {
  const modules = path.join(folder, 'node_modules');
  const theirs = path.join(root, 'reporter/node_modules');
  assert.ok(existsSync(path.join(theirs, '@playwright/test')), 'install the packages of the reporter first: npm --prefix reporter ci');
  assert.ok(existsSync(path.join(root, 'reporter/dist')), 'build the reporter first: npm --prefix reporter run build');
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: path.join(root, 'reporter') });
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'));
  mkdirSync(path.join(modules, 'callboard-reporter'), { recursive: true });
  execFileSync('tar', ['-xzf', path.join(folder, archive), '-C', path.join(modules, 'callboard-reporter'), '--strip-components=1']);
  for (const name of ['@playwright', 'playwright', 'playwright-core']) symlinkSync(path.join(theirs, name), path.join(modules, name));
  mkdirSync(path.join(modules, '.bin'));
  execFileSync('chmod', ['+x', path.join(modules, 'callboard-reporter/dist/cli.js')]);
  symlinkSync('../callboard-reporter/dist/cli.js', path.join(modules, '.bin/callboard-reporter'));
  symlinkSync('../@playwright/test/cli.js', path.join(modules, '.bin/playwright'));
}

for (const page of pages) {
  test(`the blocks of ${page} do what they say`, { concurrency: false }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'callboard-docs-'));
    folders.push(folder);
    const bin = path.join(folder, '.bin');
    mkdirSync(bin);
    symlinkSync(binary, path.join(bin, 'callboard'));
    const environment = plainEnvironment(bin);
    const service = new Service(folder, environment, await freePort());
    const adapted = (text) => text.replaceAll(WRITTEN_ADDRESS, service.address);
    const place = path.join(folder, '.where');
    let where = folder;
    await service.start();
    try {
      for (const { number, kind, options, code } of directivesOf(path.join(root, page))) {
        if (kind === 'service:stop') await service.stop();
        else if (kind === 'service:start') await service.start();
        else if (kind === 'packed-reporter') installPackedReporter(where);
        else if (kind.startsWith('file:')) writeFileSync(path.join(where, kind.slice('file:'.length)), code);
        else {
          assert.ok(code !== undefined, `${page}:${number}: no block follows`);
          const script = `set -o pipefail\ntrap 'pwd >${place}' EXIT\n${options.exit === undefined ? 'set -e\n' : ''}${adapted(code)}\n`;
          const ran = spawnSync('bash', ['-c', script], { cwd: where, env: environment, encoding: 'utf8', timeout: BLOCK_MS });
          const said = `${ran.stdout}${ran.stderr}`;
          assert.equal(ran.status, Number(options.exit ?? 0), `${page}:${number} ended with ${ran.status}:\n${said}`);
          if (options.expect !== undefined) assert.match(said, new RegExp(adapted(options.expect)), `${page}:${number}`);
          where = readFileSync(place, 'utf8').trim();
        }
      }
    } finally {
      await service.stop();
    }
  });
}
