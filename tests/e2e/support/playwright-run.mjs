/** Runs the shop's suite as a user would, in a process of its own. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const shopDir = fileURLToPath(new URL('../shop/', import.meta.url));

/** Resolves to the exit code and everything that was printed. */
export function runPlaywright(args, env = {}) {
  return new Promise((resolve) => {
    execFile('npx', ['playwright', 'test', ...args], {
      cwd: shopDir,
      env: { ...cleanEnvironment(), ...env },
      maxBuffer: 64 * 1024 * 1024,
    }, (error, stdout, stderr) => resolve({ exitCode: error ? error.code : 0, output: stdout + stderr }));
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
