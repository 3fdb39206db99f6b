/** Runs a suite of this folder with a release of Playwright, as a user would who has installed it. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { serviceUrl } from './service.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const installed = (name) => path.join(here, 'node_modules', name);

/** The installed releases, newest first. */
export const RELEASES = Object.keys(JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8')).devDependencies)
  .filter((name) => name.startsWith('playwright-')).reverse();

/** A copy of all suites that has one release and the reporter installed; `remove` deletes it. */
export function suitesFor(release) {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'callboard-referee-')));
  cpSync(path.join(here, 'suites'), folder, { recursive: true });
  mkdirSync(path.join(folder, 'node_modules/@playwright'), { recursive: true });
  symlinkSync(installed(release), path.join(folder, 'node_modules/@playwright/test'));
  symlinkSync(installed('callboard-reporter'), path.join(folder, 'node_modules/callboard-reporter'));
  let number = 0;
  /** Starts Playwright in the folder of a suite. */
  const start = (suite, args, { env = {}, project = suite } = {}) => {
    const output = path.join(folder, 'output', String(++number));
    return startProcess(path.join(installed(release), 'cli.js'), args, path.join(folder, suite), output, {
      REFEREE_OUTPUT: output,
      REFEREE_PROJECT: `${project}, ${release}`,
      SERVICE_URL: serviceUrl,
      SERVICE_SPOOL_DIR: path.join(folder, 'spool'),
      ...env,
    });
  };
  return {
    folder, start,
    run: (suite, args, options) => start(suite, args, options).finished,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function startProcess(cli, args, cwd, outputFolder, env) {
  const child = spawn(process.execPath, [cli, ...args], {
    cwd, env: { ...cleanEnvironment(), ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true,
  });
  let output = '';
  const watchers = new Set();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      for (const watcher of watchers) watcher();
    });
  }
  const finished = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, output, outputFolder }));
  });
  return {
    finished,
    /** Interrupts the run as Ctrl-C in a terminal does, once it has printed a text. */
    async interruptAt(text) {
      await new Promise((resolve, reject) => {
        const look = () => {
          if (!output.includes(text)) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        finished.then(() => reject(new Error(`"${text}" was not printed:\n${output}`)));
        look();
      });
      process.kill(-child.pid, 'SIGINT');
      return finished;
    },
  };
}

/** Without the settings of whoever runs this, of a CI system, and of node's test runner. */
function cleanEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !/^(SERVICE_|GITHUB_|GITLAB_|PLAYWRIGHT_|NODE_TEST_CONTEXT$|CI$|FORCE_COLOR$)/.test(name)));
}
