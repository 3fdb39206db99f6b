/**
 * The reporters that others have published for this protocol, unchanged, as their users run them: live and as a
 * batch, as shards, with a key, with a password, with their fixtures in a real browser.
 *   CALLBOARD_URL=… CALLBOARD_ACCOUNTS_URL=… PUBLISHED_REPORTER=@piwitests/reporter node --test published.mjs
 * `CALLBOARD_ACCOUNTS_URL` is a service with accounts that has none yet.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { firstAdministrator } from './support/first-administrator.mjs';
import { readGroundTruth } from './support/ground-truth.mjs';
import { countingDir, runCommand, runPlaywright } from './support/playwright-run.mjs';
import { getAll, getBytes, getJson, serviceUrl, sha256 } from './support/service.mjs';
import { actionsInViewer } from './support/trace-viewer.mjs';

const accountsUrl = process.env.CALLBOARD_ACCOUNTS_URL?.replace(/\/+$/, '');
const reporter = process.env.PUBLISHED_REPORTER;
if (!serviceUrl || !accountsUrl || !reporter) {
  throw new Error('CALLBOARD_URL, CALLBOARD_ACCOUNTS_URL and PUBLISHED_REPORTER must say what is tested, see the head of this file');
}

const here = fileURLToPath(new URL('.', import.meta.url));
const published = '@piwitests/reporter';
const packageDir = path.join(here, 'node_modules', reporter);
const cli = path.join(packageDir, 'dist/cli/index.js');
const { version } = JSON.parse(readFileSync(path.join(packageDir, 'package.json'), 'utf8'));
const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
after(() => rm(scratch, { recursive: true, force: true }));

/** What its users set. */
const settings = (url, projectName, more = {}) => ({
  PUBLISHED_REPORTER: reporter, PIWI_DASHBOARD_URL: url, PIWI_PROJECT_NAME: projectName, PIWI_STREAMING_BATCH_DELAY: '50', ...more,
});
const named = (what) => `${what} ${randomUUID().slice(0, 8)}`;
const count = (env, more = []) => runPlaywright(['--retries=1', '--workers=1', ...more, `--output=${path.join(scratch, randomUUID())}`], env, countingDir);
const SOME = ['--project=one', 'outcomes', 'files'];
const SOME_TOTALS = { totalTests: 16, passedTests: 7, failedTests: 5, timedOutTests: 1, flakyTests: 2, skippedTests: 3, didNotRunTests: 1 };
const FILES_TOTALS = { totalTests: 10, passedTests: 6, failedTests: 2, timedOutTests: 0, flakyTests: 2, skippedTests: 2, didNotRunTests: 0 };
const totalsOf = (shown) => Object.fromEntries(Object.keys(SOME_TOTALS).map((key) => [key, shown[key]]));

/** The run a reporter says it made. */
function runOf({ output }) {
  const said = /View run: .*\/test-runs\/(\d+)/.exec(output);
  assert.ok(said, output);
  return said[1];
}

describe('a run without a browser', () => {
  const told = ({ title, status, flaky, attemptCount, error, location }) => ({ title, status, flaky, attemptCount, error, location });
  const byTitle = (a, b) => (a.title < b.title ? -1 : 1);
  const executionsOf = async (run) => (await getAll(`/api/test-runs/${run}/executions`)).map(told).sort(byTitle);

  test('is the same streamed and as a batch, and another one each time', async () => {
    const project = named('published');
    const runs = [];
    for (const streaming of ['true', 'false']) {
      const finished = await count(settings(serviceUrl, project, { PIWI_STREAMING: streaming }), SOME);
      assert.equal(finished.exitCode, 1, 'as without a reporter');
      runs.push(runOf(finished));
      const run = await getJson(`/api/test-runs/${runs.at(-1)}`);
      assert.deepEqual([run.projectName, run.status, totalsOf(run)], [project, 'failed', SOME_TOTALS], finished.output);
      assert.equal(run.reporterVersion, version);
    }
    assert.notEqual(runs[0], runs[1]);
    assert.deepEqual(await executionsOf(runs[0]), await executionsOf(runs[1]));
  });
});

// What is wrapped asks for the package by the name it is published under.
describe('a run that is announced before its tests', { skip: reporter !== published }, () => {
  test('is begun by them, and is one run', async () => {
    const project = named('published');
    const finished = await count(settings(serviceUrl, project, { COUNTING_SETUP: '1', PIWI_VERBOSE: 'true' }), ['--project=one', 'files']);
    assert.match(finished.output, /initialising run/);
    const run = await getJson(`/api/test-runs/${runOf(finished)}`);
    assert.deepEqual([run.projectName, run.status, run.totalTests], [project, 'failed', 5]);
    const { items } = await getJson(`/api/test-runs?project=${run.projectId}`);
    assert.deepEqual(items.map(({ id }) => id), [run.id]);
  });
});

describe('the gate of their command', () => {
  test('passes and fails by what it is asked', async () => {
    const finished = await count(settings(serviceUrl, named('published')), ['--project=one', 'files']);
    const gate = (...policy) => runCommand(`node ${JSON.stringify(cli)} gate --run-id ${runOf(finished)} ${policy.join(' ')}`, { PIWI_DASHBOARD_URL: serviceUrl }, here);
    const [passing, failing, empty] = await Promise.all([gate('--max-failed 1'), gate('--max-failed 0'), gate()]);
    assert.deepEqual([passing.exitCode, failing.exitCode, empty.exitCode], [0, 1, 2], passing.output + failing.output + empty.output);
    assert.match(failing.output, /1 test failed/);
  });
});

describe('who signs in', () => {
  const account = { username: `pipeline-${randomUUID().slice(0, 8)}`, password: randomBytes(18).toString('base64url') };
  let administrator;
  before(async () => {
    administrator = await firstAdministrator(accountsUrl);
    await ask('/api/users', { ...account, role: 'reporter', isGlobal: true });
  });

  async function ask(where, body) {
    const response = await fetch(new URL(where, accountsUrl), {
      method: body ? 'POST' : 'GET', headers: { authorization: `Bearer ${administrator.apiKey}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    assert.ok(response.ok, `${where} was answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  const runsOf = async (project) => (await ask('/api/test-runs?limit=200')).items.filter(({ projectName }) => projectName === project);
  const ways = {
    'an API key': () => ({ PIWI_API_KEY: administrator.apiKey }),
    'a password': () => ({ PIWI_USERNAME: account.username, PIWI_PASSWORD: account.password }),
  };
  for (const [way, credentials] of Object.entries(ways)) {
    for (const streaming of ['true', 'false']) {
      test(`with ${way} sends shards of one run, ${streaming === 'true' ? 'streamed' : 'as batches'}`, async () => {
        const project = named('published');
        const env = settings(accountsUrl, project, { ...credentials(), PIWI_STREAMING: streaming, PIWI_RUN_LABEL: randomUUID() });
        const shards = await Promise.all([1, 2].map((index) => count(env, ['files', '--fully-parallel', `--shard=${index}/2`])));
        const [stored, ...others] = await runsOf(project);
        assert.deepEqual([others.length, stored?.status, stored && totalsOf(stored), stored?.shardsFinished], [0, 'failed', FILES_TOTALS, 2],
          shards.map(({ output }) => output).join('\n'));
      });
    }
  }
});

describe('a run in a browser, captured by their fixtures', () => {
  const project = named('published shop');
  let run;
  let executions;
  let truth;
  const executionOf = (title, browser) => executions.find((each) => each.title === title && each.browserProject === browser);

  before(async () => {
    // They look for the report in the folder they run in, which is where Playwright writes it: that of the package.
    const finished = await runPlaywright(['-c', 'shop'], settings(serviceUrl, project, { PIWI_ENVIRONMENT: 'check' }), here);
    truth = readGroundTruth();
    run = await getJson(`/api/test-runs/${runOf(finished)}`);
    executions = await getAll(`/api/test-runs/${run.id}/executions`);
  });

  test('is counted in tests, not in attempts', () => {
    assert.deepEqual([run.status, run.environment, totalsOf(run)], ['failed', 'check',
      { totalTests: 18, passedTests: 10, failedTests: 6, timedOutTests: 2, flakyTests: 2, skippedTests: 2, didNotRunTests: 0 }]);
    assert.deepEqual(run.metadata.tags, ['end-to-end']);
  });

  test('keeps every attachment and trace byte for byte, at its attempt', async () => {
    const sorted = (files) => files.map(({ retry, name, sha256: hash }) => `${retry} ${name} ${hash}`).sort();
    for (const { title, project: browser, files } of truth) {
      const stored = await getAll(`/api/test-run-cases/${executionOf(title, browser).id}/files`);
      const found = await Promise.all(stored.map(async (file) => ({
        retry: file.attempt?.retry ?? 0, name: file.name, sha256: sha256(await getBytes(`/api/files/${file.id}?download=1`)),
      })));
      // What a test attaches as text these reporters do not send.
      const sent = files.filter(({ name, isOnDisk }) => isOnDisk && !name.startsWith('piwi'));
      assert.deepEqual(sorted(found), sorted(sent), `files of ${title} in ${browser}`);
    }
    const traces = await getJson(`/api/test-run-cases/${executionOf('pays with one click', 'desktop').id}/traces`);
    const actions = await actionsInViewer(await getBytes(`/api/files/${traces.items[0].id}?download=1`));
    assert.ok(actions.some((action) => action.includes('Click') && action.includes('pay-now')), actions.join(' | '));
  });

  test('tells what the page was like', async () => {
    const coupon = await getJson(`/api/test-run-cases/${executionOf('applies a coupon', 'desktop').id}?attempt=0`);
    const { networkRequests, consoleLogs, webVitals, ariaSnapshot } = coupon.evidence;
    const stock = networkRequests.find(({ normalizedUrl }) => normalizedUrl.startsWith('/stock'));
    assert.deepEqual([stock.method, stock.status], ['GET', 200]);
    assert.ok(consoleLogs.some(({ text }) => text === 'coupons are slow today'));
    assert.ok(webVitals.navigation.ttfb >= 0);
    assert.match(ariaSnapshot, /status.*Try again later/);
    assert.ok(!/(SUMMER|COOKIE|QUERY)-SECRET/.test(JSON.stringify(coupon)));
  });

  test('keeps its HTML report', async () => {
    const { items } = await getJson(`/api/test-runs/${run.id}/reports`);
    assert.deepEqual(items.map(({ type }) => type), ['html']);
    const written = await readFile(new URL('playwright-report/index.html', import.meta.url));
    assert.equal(sha256(await getBytes(`/api/files/${items[0].path}?download=1`)), sha256(written));
  });
});
