/**
 * The reporters that others have published for this protocol, unchanged, as their users run them: live and as a
 * batch, as shards, with a key, with a password, with their fixtures in a real browser.
 *   CALLBOARD_URL=… CALLBOARD_ACCOUNTS_URL=… PUBLISHED_REPORTER=@piwitests/reporter node --test published.mjs
 * `CALLBOARD_ACCOUNTS_URL` is a service with accounts that has none yet.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cuttableLine } from './support/cuttable-line.mjs';
import { faultyLine } from './support/faulty-line.mjs';
import { firstAdministrator } from './support/first-administrator.mjs';
import { readGroundTruth } from './support/ground-truth.mjs';
import { countingDir, runCommand, runPlaywright, startPlaywright } from './support/playwright-run.mjs';
import { count, countingArguments, FILES_TOTALS, named, reporter, runOf, runsOf, settings, totalsOf } from './support/published-reporter.mjs';
import { getAll, getBytes, getJson, serviceUrl, sha256 } from './support/service.mjs';
import { actionsInViewer } from './support/trace-viewer.mjs';

const accountsUrl = process.env.CALLBOARD_ACCOUNTS_URL?.replace(/\/+$/, '');
if (!serviceUrl || !accountsUrl || !reporter) {
  throw new Error('CALLBOARD_URL, CALLBOARD_ACCOUNTS_URL and PUBLISHED_REPORTER must say what is tested, see the head of this file');
}

const here = fileURLToPath(new URL('.', import.meta.url));
const published = '@piwitests/reporter';
const packageDir = path.join(here, 'node_modules', reporter);
const cli = path.join(packageDir, 'dist/cli/index.js');
const { version } = JSON.parse(readFileSync(path.join(packageDir, 'package.json'), 'utf8'));

const SOME = ['--project=one', 'outcomes', 'files'];
const SOME_TOTALS = { totalTests: 16, passedTests: 7, failedTests: 5, timedOutTests: 1, flakyTests: 2, skippedTests: 3, didNotRunTests: 1 };
/** Those of `files` in both browser projects. */
const BOTH_TOTALS = Object.fromEntries(Object.entries(FILES_TOTALS).map(([key, tests]) => [key, 2 * tests]));

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

describe('a run with files', () => {
  const FILES = ['--project=one', 'files'];
  const sharded = (env, index, more = []) => count(env, [...FILES, '--fully-parallel', `--shard=${index}/2`, ...more]);

  /** What is stored of the tests of a run, with the bytes of their files. */
  async function storedOf(run) {
    const executions = await getAll(`/api/test-runs/${run}/executions`);
    const stored = await Promise.all(executions.map(async ({ id, title, status, flaky, attemptCount }) => {
      const files = await getAll(`/api/test-run-cases/${id}/files`);
      const hashes = await Promise.all(files.map(async (file) =>
        `${file.attempt?.retry} ${file.name} ${sha256(await getBytes(`/api/files/${file.id}?download=1`))}`));
      return { title, status, flaky, attemptCount, files: hashes.sort() };
    }));
    return stored.sort((a, b) => (a.title < b.title ? -1 : 1));
  }

  let whole;
  before(async () => {
    whole = await storedOf(runOf(await count(settings(serviceUrl, named('published')), FILES)));
    const traces = ['trace of attempt 0', 'trace of attempt 1'].map((bytes, retry) => `${retry} trace ${sha256(Buffer.from(bytes))}`);
    const { files } = whole.find(({ title }) => title === 'leaves files and recovers');
    // Beside the account that Playwright writes of what went wrong.
    assert.deepEqual(files.filter((file) => file.includes(' trace ')), traces);
  });

  test('has its files, byte for byte, as a batch too', async () => {
    const finished = await count(settings(serviceUrl, named('published'), { PIWI_STREAMING: 'false' }), FILES);
    assert.deepEqual(await storedOf(runOf(finished)), whole);
  });

  test('is the same in shards, of which one comes after the other', async () => {
    const project = named('published');
    const env = settings(serviceUrl, project, { PIWI_RUN_LABEL: randomUUID() });
    const shards = [await sharded(env, 1), await sharded(env, 2)];
    const runs = await runsOf(project);
    const said = shards.map(({ output }) => output).join('\n');
    assert.deepEqual(runs.map((run) => [run.status, run.shardsFinished, totalsOf(run)]), [['failed', 2, FILES_TOTALS]], said);
    assert.deepEqual(await storedOf(runs[0].id), whole, said);
  });

  test('passes when all its shards did, whoever they say they are where nobody is asked', async () => {
    const project = named('published');
    const env = settings(serviceUrl, project, { PIWI_RUN_LABEL: randomUUID(), PIWI_USERNAME: 'pipeline', PIWI_PASSWORD: 'of no account' });
    const shards = await Promise.all([1, 2].map((index) => sharded(env, index, ['--grep-invert=goes wrong'])));
    assert.deepEqual(shards.map(({ exitCode }) => exitCode), [0, 0]);
    const runs = await runsOf(project);
    assert.deepEqual(runs.map((run) => [run.status, run.shardsFinished, totalsOf(run)]),
      [['passed', 2, { ...FILES_TOTALS, totalTests: 4, failedTests: 0 }]], shards.map(({ output }) => output).join('\n'));
  });

  test('has the tests of all legs of a matrix that has shards', async () => {
    const project = named('published');
    const env = settings(serviceUrl, project, { PIWI_RUN_LABEL: randomUUID() });
    const legs = ['one', 'two'].flatMap((leg) => [1, 2].map((index) =>
      count(env, ['files', '--fully-parallel', `--project=${leg}`, `--shard=${index}/2`])));
    const said = (await Promise.all(legs)).map(({ output }) => output).join('\n');
    const runs = await runsOf(project);
    assert.deepEqual(runs.map((run) => [run.status, totalsOf(run)]), [['failed', BOTH_TOTALS]], said);
  });

  test('is the same when answers to its results and files are lost', async (context) => {
    const line = await faultyLine(serviceUrl);
    context.after(() => line.close());
    line.with((call, time) => (['events', 'case-files'].includes(call) && time <= 2 ? 'done and answered 502' : undefined));
    const project = named('published');
    const { output } = await count(settings(line.url, project), FILES);
    assert.ok(line.calls.filter((call) => call === 'events').length > 2, line.calls.join());
    const runs = await runsOf(project);
    assert.deepEqual(runs.map((run) => [run.status, totalsOf(run)]), [['failed', FILES_TOTALS]], output);
    assert.deepEqual(await storedOf(runs[0].id), whole);
  });

  test('is one run when nobody learns that it was over', async (context) => {
    const line = await faultyLine(serviceUrl);
    context.after(() => line.close());
    line.with((call) => (call === 'finish' ? 'done and answered 502' : undefined));
    const project = named('published');
    const { output } = await count(settings(line.url, project), FILES);
    assert.ok(line.calls.includes('finish'), line.calls.join());
    const runs = await runsOf(project);
    assert.deepEqual(runs.map((run) => [run.status, totalsOf(run)]), [['failed', FILES_TOTALS]], output);
    assert.deepEqual(await storedOf(runs[0].id), whole);
  });

  test('comes with the next one, once, when nobody was there', async (context) => {
    const line = await cuttableLine(serviceUrl);
    context.after(() => line.close());
    const project = named('published');
    line.cut();
    const away = await count(settings(line.url, project, { PIWI_STREAMING: 'false' }), FILES);
    assert.equal(away.exitCode, 1, 'as without a reporter');
    line.mend();
    const next = [await count(settings(line.url, project), FILES), await count(settings(line.url, project), FILES)];
    const runs = await runsOf(project);
    assert.deepEqual(runs.map((run) => [run.status, totalsOf(run)]), Array(3).fill(['failed', FILES_TOTALS]), next[0].output);
    const withoutFiles = (tests) => tests.map(({ files: _files, ...told }) => told);
    assert.deepEqual(withoutFiles(await storedOf(runs[0].id)), withoutFiles(whole));
  });

  test('keeps what it had when it is killed, and leaves the one alone that is started after it', async () => {
    const project = named('published');
    const killed = startPlaywright(countingArguments(FILES), settings(serviceUrl, project, { COUNTING_PAUSE_MS: '60000' }), countingDir);
    const run = /\/test-runs\/(\d+)/.exec(await killed.line(/Watch live: /))[1];
    while ((await getJson(`/api/test-runs/${run}`)).totalTests < 4) await delay(100);
    killed.signal('SIGKILL');
    await killed.finished;
    const again = runOf(await count(settings(serviceUrl, project), FILES));
    assert.notEqual(again, run);
    assert.deepEqual(await storedOf(again), whole);
    const kept = (await storedOf(run)).map(({ title, status }) => [title, status]);
    const had = whole.filter(({ title }) => title !== 'takes its time').map(({ title, status }) => [title, status]);
    assert.deepEqual(kept, had);
    assert.equal((await getJson(`/api/test-runs/${run}`)).status, 'running', 'it may come back for two minutes');
  });
});

// What is wrapped asks for the package by the name it is published under.
describe('a run that is announced before its tests', { skip: reporter !== published }, () => {
  test('is begun by them, and is one run', async () => {
    const project = named('published');
    const finished = await count(settings(serviceUrl, project, { COUNTING_SETUP: 'wrapped', PIWI_VERBOSE: 'true' }), ['--project=one', 'files']);
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
        assert.deepEqual([others.length, stored?.status, stored && totalsOf(stored), stored?.shardsFinished], [0, 'failed', BOTH_TOTALS, 2],
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
