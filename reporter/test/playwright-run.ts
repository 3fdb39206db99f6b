/** A suite in a folder that has the package installed the way a user has it, and a real Playwright to run it. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const PACKAGE = path.resolve(__dirname, '../..');
const CLI = path.join(PACKAGE, 'node_modules/@playwright/test/cli.js');

export interface Finished {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** What the reporter said. */
  lines: string[];
}

export function installedSuite(type: 'commonjs' | 'module', suite = 'suite'): string {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'callboard-suite-')));
  cpSync(path.join(PACKAGE, 'test', suite), dir, { recursive: true });
  writeFileSync(path.join(dir, 'package.json'), JSON.stringify({ name: 'sample-shop', type }));
  mkdirSync(path.join(dir, 'node_modules/@playwright'), { recursive: true });
  symlinkSync(PACKAGE, path.join(dir, 'node_modules/callboard-reporter'));
  symlinkSync(path.join(PACKAGE, 'node_modules/@playwright/test'), path.join(dir, 'node_modules/@playwright/test'));
  return dir;
}

/** Runs are spooled inside the folder of the suite, unless told otherwise. */
export function playwright(dir: string, args: string[], env: Record<string, string> = {}): Promise<Finished> {
  return run(dir, [CLI, 'test', ...args], env);
}

export function callboard(dir: string, args: string[], env: Record<string, string> = {}): Promise<Finished> {
  return run(dir, [path.join(PACKAGE, 'dist/cli.js'), ...args], env);
}

function run(dir: string, args: string[], env: Record<string, string>): Promise<Finished> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) =>
    !/^(SERVICE_|GITHUB_|GITLAB_|PLAYWRIGHT_|NODE_TEST_CONTEXT$|CI$)/.test(name)));
  const own = { SERVICE_SPOOL_DIR: path.join(dir, 'spool'), ...env };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: dir, env: { ...inherited, ...own } }, (error, stdout, stderr) => {
      const lines = `${stdout}${stderr}`.split('\n').filter((line) => line.startsWith('[callboard]'));
      resolve({ exitCode: error ? Number(error.code) : 0, stdout, stderr, lines });
    });
  });
}
