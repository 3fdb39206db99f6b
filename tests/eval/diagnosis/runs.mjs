/**
 * Makes the executions: two projects, each with a run in which everything passes and one in which half of the cases
 * fail; then one in which some fail again, and one in which the shop is down.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cases, casesOf } from './cases.mjs';

const SHOP = fileURLToPath(new URL('shop/', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../../e2e/node_modules', import.meta.url));
const DIFFERENCES = new URL('differences.mjs', import.meta.url).href;
/** The headless shell, where there is one, needs a fraction of the time. */
const BROWSERS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
/** Tests wait more than they compute. */
const WORKERS = 3;
/** Tests that pass beside those that fail again. */
const BESIDE = ['finds', 'shows the price of'];

export const projectOf = (half) => `corner shop, ${half} half`;

/** A difference that changes nothing would be a test that fails for another reason. */
async function checkReplacements() {
  for (const { test, difference } of cases) {
    for (const [name, pairs] of Object.entries(difference?.files ?? {})) {
      const source = await readFile(path.join(SHOP, 'pages', name), 'utf8');
      for (const [from] of pairs) if (!source.includes(from)) throw new Error(`${test}: ${name} does not contain ${from}`);
    }
  }
}

/** Makes all executions; resolves to what did not go as it should. */
export async function makeRuns(serviceUrl) {
  await checkReplacements();
  // A browser for each worker: what locators found is not captured in one that workers connect to.
  const browser = process.env.CHROMIUM_PATH ?? BROWSERS.find(existsSync);
  const problems = await Promise.all(['first', 'second'].map((half) => runHalf(serviceUrl, half, browser)));
  return problems.flat();
}

async function runHalf(serviceUrl, half, browser) {
  const checkout = await mkdtemp(path.join(tmpdir(), 'callboard-eval-'));
  try {
    await cp(SHOP, checkout, { recursive: true });
    await symlink(PACKAGES, path.join(checkout, 'node_modules'));
    await writeFile(path.join(checkout, '.gitignore'), 'node_modules\ntest-results/\n');
    const environment = {
      SERVICE_URL: serviceUrl, SERVICE_PROJECT_NAME: projectOf(half), SERVICE_SPOOL_DIR: path.join(checkout, 'test-results/spool'),
      EVAL_DIFFERENCES: DIFFERENCES, EVAL_BROWSER: browser, EVAL_PATIENCE: process.env.EVAL_PATIENCE ?? '1',
    };
    const problems = [];
    const run = async (phase, titles = []) => {
      const { exitCode, output } = await playwright(checkout, { ...environment, EVAL_PHASE: phase }, titles);
      const shouldPass = phase === 'healthy';
      if ((exitCode === 0) !== shouldPass) problems.push(`${half} half, ${phase}: exit code ${exitCode}\n${output.slice(-4_000)}`);
    };
    git(checkout, 'init', '--quiet', '--initial-branch=main');
    commit(checkout, 'Open the shop');
    await run('healthy');
    await applyChanges(checkout, casesOf(half));
    commit(checkout, 'Go on with the shop');
    await run(half);
    if (half === 'first') {
      const again = casesOf('repeated').map(({ test }) => test);
      await run('repeated', [...again, ...cases.filter(passesBeside).map(({ test }) => test)]);
    } else {
      await run('stopped', casesOf('stopped').map(({ test }) => test));
    }
    return problems;
  } finally {
    await rm(checkout, { recursive: true, force: true });
  }
}

const passesBeside = ({ half, test }) => half === 'second' && BESIDE.some((start) => test.startsWith(start));

/** Cases whose test, or its settings, are what is wrong. */
async function applyChanges(checkout, changed) {
  const changes = new Map(changed.filter(({ change }) => change).map(({ change }) => [`${change.spec} ${change.from}`, change]));
  for (const { spec, from, to } of changes.values()) {
    const file = path.join(checkout, 'tests', spec);
    const source = await readFile(file, 'utf8');
    if (!source.includes(from)) throw new Error(`${spec} does not contain ${from}`);
    await writeFile(file, source.replace(from, () => to));
  }
}

const git = (cwd, ...args) => execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], { cwd });

function commit(checkout, message) {
  git(checkout, 'add', '--all');
  git(checkout, 'commit', '--quiet', '--message', message);
}

function playwright(cwd, environment, titles) {
  const only = titles.length > 0 ? ['--grep', `(${titles.join('|')})$`] : [];
  const cli = path.join(PACKAGES, '@playwright/test/cli.js');
  const child = spawn(process.execPath, [cli, 'test', `--workers=${WORKERS}`, ...only], { cwd, env: { ...own(), ...environment } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text; });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (exitCode) => resolve({ exitCode, output }));
  });
}

/** Without the settings of whoever runs this. */
function own() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SERVICE_|PLAYWRIGHT_|EVAL_|CI$|GITHUB_)/.test(name)));
}
