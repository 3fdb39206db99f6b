/** Runs the shop's suite as a user would, in a process of its own. */
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PLAYWRIGHT = fileURLToPath(new URL('../node_modules/@playwright/test/cli.js', import.meta.url));
const CLI = fileURLToPath(new URL('../node_modules/callboard-reporter/dist/cli.js', import.meta.url));
export const shopDir = fileURLToPath(new URL('../shop/', import.meta.url));
/** A suite without a browser that has every outcome. */
export const countingDir = fileURLToPath(new URL('../counting/', import.meta.url));

/** Resolves to the exit code and everything that was printed. */
export function runPlaywright(args, env = {}, cwd = shopDir) {
  return startPlaywright(args, env, cwd).finished;
}

/**
 * A run that can be watched: `line` resolves to the first line of output that matches. It
 * is a process group of its own, which `signal` reaches as a terminal would.
 */
export function startPlaywright(args, env = {}, cwd = shopDir) {
  const child = spawn(process.execPath, [PLAYWRIGHT, 'test', ...args], {
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
    child.on('close', (exitCode) => resolve({ exitCode, output }));
  });
  const line = (pattern) => new Promise((resolve, reject) => {
    const look = () => {
      const found = output.split('\n').slice(0, -1).find((each) => pattern.test(each));
      if (found === undefined) return;
      watchers.delete(look);
      resolve(found);
    };
    watchers.add(look);
    finished.then(() => reject(new Error(`no line like ${pattern} in:\n${output}`)));
    look();
  });
  return { finished, line, signal: (name) => process.kill(-child.pid, name) };
}

/** Runs the command of the package; resolves like a run. */
export function callboardReporter(args, env = {}, cwd = shopDir) {
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI, ...args], { cwd, env: { ...cleanEnvironment(), ...env } },
      (error, stdout, stderr) => resolve({ exitCode: error ? error.code : 0, output: stdout + stderr }));
  });
}

/** Runs a command in a shell, as a person would who pastes it; resolves like a run. */
export function runCommand(command, env = {}, cwd = shopDir) {
  return new Promise((resolve) => {
    execFile('sh', ['-c', command], { cwd, env: { ...cleanEnvironment(), ...env } },
      (error, stdout, stderr) => resolve({ exitCode: error ? error.code : 0, output: stdout + stderr }));
  });
}

export function linesOfReporter(output) {
  return output.split('\n').filter((line) => line.startsWith('[callboard]'));
}

/** Without the settings of whoever runs the check, and without the marks of node's test runner. */
function cleanEnvironment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !name.startsWith('SERVICE_') && !name.startsWith('PLAYWRIGHT_') && name !== 'NODE_TEST_CONTEXT'));
}
