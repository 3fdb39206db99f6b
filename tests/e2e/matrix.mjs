/**
 * Runs checks of this folder with other releases of Playwright: those given, else the
 * newest of each of the last three minor versions.
 *   CALLBOARD_URL=http://127.0.0.1:3000 node matrix.mjs [version…]
 * Without `CALLBOARD_URL` only what needs no service is run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const reporter = path.resolve(here, '../../reporter');
const checks = process.env.CALLBOARD_URL ? ['check.mjs', 'streaming.mjs', 'capture.mjs'] : ['capture.mjs'];
const MINORS = 3;

let failed = 0;
for (const version of process.argv.length > 2 ? process.argv.slice(2) : lastMinors()) {
  const dir = mkdtempSync(path.join(tmpdir(), `callboard-playwright-${version}-`));
  try {
    for (const name of [...checks, 'shop', 'counting', 'support']) {
      cpSync(path.join(here, name), path.join(dir, name), { recursive: true, filter: (file) => !/test-results|playwright-report/.test(file) });
    }
    const manifest = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
    manifest.devDependencies = { '@playwright/test': version, 'callboard-reporter': `file:${reporter}` };
    writeFileSync(path.join(dir, 'package.json'), JSON.stringify(manifest));
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: dir, stdio: 'inherit', env: { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: '1' },
    });
    console.log(`\n=== Playwright ${version}`);
    const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', '--test-concurrency=1', ...checks], { cwd: dir, stdio: 'inherit' });
    if (status !== 0) failed++;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
process.exitCode = failed > 0 ? 1 : 0;

function lastMinors() {
  const versions = JSON.parse(execFileSync('npm', ['view', '@playwright/test', 'versions', '--json'], { encoding: 'utf8' }));
  const newest = new Map();
  for (const version of versions.filter((each) => /^\d+\.\d+\.\d+$/.test(each))) {
    newest.set(version.split('.').slice(0, 2).join('.'), version);
  }
  return [...newest.values()].slice(-MINORS);
}
