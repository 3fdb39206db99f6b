/**
 * A day of CI through the deployed functions: four shards of a real Playwright run with our reporter, watched while
 * they run, against functions behind a gateway; then the same suite against the local runner, and both compared row by
 * row and with Playwright's own report. Needs `CALLBOARD_GATEWAY`, the line of JSON that `callboard-test-gateway`
 * prints, and `CALLBOARD_GATEWAY_COMMANDS`, the file that is its input; `CHROMIUM_PATH` when Chromium is not at
 * /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { appendFile, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { chromium } from '@playwright/test';
import { firstAdministrator } from './support/first-administrator.mjs';
import { largerZip } from './support/larger-zip.mjs';
import { readGroundTruth } from './support/ground-truth.mjs';
import { linesOfReporter, startPlaywright } from './support/playwright-run.mjs';
import { sha256 } from './support/service.mjs';

const addresses = JSON.parse(process.env.CALLBOARD_GATEWAY ?? 'null');
if (!addresses) throw new Error('CALLBOARD_GATEWAY must be the line of JSON that callboard-test-gateway prints');

const SHARDS = 4;
const TOTALS = { totalTests: 18, passedTests: 10, failedTests: 6, timedOutTests: 2, skippedTests: 2, flakyTests: 2, didNotRunTests: 0 };
/** Final statuses of a run. */
const ENDED = ['passed', 'failed', 'timedout', 'interrupted', 'cancelled'];
const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-functions-'));
after(() => rm(scratch, { recursive: true, force: true, maxRetries: 5 }));

/** A service and what a signed-in caller reads of it. */
async function service(address) {
  const { apiKey } = await firstAdministrator(address);
  const get = (where, options = {}) => fetch(new URL(where, address), {
    ...options, headers: { authorization: `Bearer ${apiKey}`, ...options.headers },
  });
  async function getJson(where) {
    const answer = await get(where);
    const text = await answer.text();
    assert.equal(answer.status, 200, `GET ${where}: ${text.slice(0, 500)}`);
    return JSON.parse(text);
  }
  async function getAll(where) {
    const items = [];
    for (let cursor = null; ;) {
      const sign = where.includes('?') ? '&' : '?';
      const page = await getJson(cursor === null ? where : `${where}${sign}cursor=${encodeURIComponent(cursor)}`);
      items.push(...page.items);
      cursor = page.nextCursor ?? null;
      if (cursor === null) return items;
    }
  }
  return { address, apiKey, get, getJson, getAll };
}

/** Asks until the answer is the one that is waited for. */
async function eventually(what, ask) {
  for (let attempt = 0; attempt < 240; attempt += 1) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
  throw new Error(`never: ${what}`);
}

/** Starts all shards of the suite; two workers in all, as many as a small machine has. */
function startShards(to, name) {
  const folder = path.join(scratch, name);
  const env = {
    SERVICE_URL: to.address,
    SERVICE_API_KEY: to.apiKey,
    SERVICE_PROJECT_NAME: 'shop',
    SERVICE_ENVIRONMENT: 'ci',
    SERVICE_RUN_LABEL: `pipeline ${randomUUID()}`,
    SERVICE_SPOOL_DIR: path.join(folder, 'spool'),
    SERVICE_STREAMING_BATCH_DELAY: '50',
  };
  return Array.from({ length: SHARDS }, (_, index) => {
    const shard = index + 1;
    const report = path.join(folder, `${shard}.json`);
    const running = startPlaywright(
      ['--reporter=dot,json,html,callboard-reporter', `--shard=${shard}/${SHARDS}`, '--workers=1', `--output=${path.join(folder, `results-${shard}`)}`],
      { ...env, PLAYWRIGHT_JSON_OUTPUT_FILE: report, PLAYWRIGHT_HTML_OUTPUT_DIR: path.join(folder, `report-${shard}`), PLAYWRIGHT_HTML_OPEN: 'never' });
    return { ...running, report };
  });
}

/** The messages of a live stream, over as many short answers as it takes. */
async function watch({ get }, runId) {
  const messages = [];
  let last;
  let answers = 0;
  while (!messages.some(({ type }) => type === 'run-finished')) {
    const answer = await get(`/api/test-runs/${runId}/stream`, last === undefined ? {} : { headers: { 'last-event-id': last } });
    assert.equal(answer.status, 200);
    answers += 1;
    for (const line of (await answer.text()).split('\n')) {
      if (line.startsWith('id: ')) last = line.slice(4);
      if (line.startsWith('data: ')) messages.push(JSON.parse(line.slice(6)));
    }
    if (answers > 100) throw new Error(`the run never ended; ${messages.length} messages`);
  }
  return { messages, answers };
}

/** The port of the shop, folders, and how often an assertion looked, differ between two runs of a suite; nothing else may. */
function normal(value) {
  return JSON.parse(JSON.stringify(value ?? null)
    .replace(/localhost:\d+|127\.0\.0\.1:\d+/g, 'SHOP')
    .replaceAll(/\d+ × /g, 'some × ')
    .replaceAll(/results-\d/g, 'RESULTS')
    .replaceAll(/callboard-functions-\w+\/\w+/g, 'SCRATCH'));
}

/** What follows it is Playwright's log of the attempt, which no two runs share; what a test waited for when its time was up depends on the machine. */
const firstLine = (text) => text?.split('\n')[0].replace(/^.*(Test timeout of \d+ms exceeded).*$/, '$1');

/** Everything a run brought that does not depend on when and where it ran. */
async function rowsOf(to, runId) {
  const executions = await to.getAll(`/api/test-runs/${runId}/executions?limit=7`);
  const rows = await Promise.all(executions.map(async ({ id }) => {
    const row = await to.getJson(`/api/test-run-cases/${id}`);
    const files = await to.getAll(`/api/test-run-cases/${id}/files`);
    const { evidence } = row;
    return normal({
      title: row.title, location: row.location, suitePath: row.suitePath, project: row.browserProject, tags: row.tags?.toSorted(), owner: row.owner,
      status: row.status, flaky: row.flaky, expectedFailure: row.expectedFailure, retries: row.retries, error: firstLine(row.errorPlain),
      attempts: row.attempts.map(({ status, error }) => ({ status, error: firstLine(error) })),
      steps: evidence.steps?.map(({ title, category }) => ({ title, category })),
      console: evidence.consoleLogs?.map(({ type, text }) => ({ type, text })),
      network: evidence.networkRequests?.map(({ method, url, status }) => `${method} ${url} ${status}`).toSorted(),
      source: evidence.testSource, aria: evidence.ariaSnapshot,
      files: files.map(({ kind, name, contentType, attempt }) => ({ kind, name, contentType, attempt })).toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    });
  }));
  return rows.toSorted((one, other) => `${one.location} ${one.project}`.localeCompare(`${other.location} ${other.project}`));
}

describe('a CI day through functions', () => {
  let functions;
  let runner;
  let browser;
  let run;
  let seen;
  let during;
  let livePage;
  let reports;
  let executions;

  before(async () => {
    [functions, runner] = await Promise.all([service(addresses.functions), service(addresses.runner)]);
    browser = await chromium.launch({
      executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    const shards = startShards(functions, 'functions');
    const live = await shards[0].line(/^\[callboard\] live: /);
    const runId = Number(/\/test-runs\/(\d+)/.exec(live)[1]);
    const watching = watch(functions, runId);
    // A session's cookie needs TLS, which ends in front of the gateway.
    const context = await browser.newContext({ extraHTTPHeaders: { authorization: `Bearer ${functions.apiKey}` } });
    const page = await context.newPage();
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${functions.address}/test-runs/${runId}`);
    await page.evaluate(() => { window.isSamePage = true; });
    during = await eventually('a result of a run that goes on', async () => {
      const now = await functions.getJson(`/api/test-runs/${runId}`);
      return now.totalTests > 0 ? now : undefined;
    });
    const finished = await Promise.all(shards.map((shard) => shard.finished));
    for (const { output } of finished) {
      const said = linesOfReporter(output);
      assert.ok(said.length === 2 && said.every((line) => line.endsWith(`/test-runs/${runId}`)), output);
    }
    reports = shards.map(({ report }) => report);
    seen = await watching;
    await page.getByText('shows the total with tax').first().waitFor();
    await page.getByText('pays with one click').first().waitFor();
    livePage = { text: await page.locator('main').innerText(), isSamePage: await page.evaluate(() => window.isSamePage), complaints };
    await context.close();
    run = await eventually('a run that is complete', async () => {
      const now = await functions.getJson(`/api/test-runs/${runId}`);
      return ENDED.includes(now.status) ? now : undefined;
    });
    executions = await functions.getAll(`/api/test-runs/${runId}/executions`);
  });

  after(() => browser?.close());

  test('four shards are one run with the totals of the suite', () => {
    assert.deepEqual(Object.fromEntries(Object.keys(TOTALS).map((key) => [key, run[key]])), TOTALS);
    assert.deepEqual([run.status, run.shardsFinished, run.environment], ['failed', SHARDS, 'ci']);
  });

  test('is seen while it goes on, on its page and by whoever listens', () => {
    assert.equal(during.status, 'running');
    const types = seen.messages.map(({ type }) => type);
    assert.equal(types[0], 'init');
    // Files and reports that come late change nothing but the numbers.
    assert.deepEqual(types.slice(types.indexOf('run-finished') + 1).filter((type) => type !== 'run-progress'), []);
    for (const type of ['test-begin', 'test-completed', 'run-progress', 'run-finished']) assert.ok(types.includes(type), type);
    const order = seen.messages.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []));
    assert.deepEqual(order, [...new Set(order)].toSorted((one, other) => one - other), 'nothing twice, and in order');
    assert.ok(seen.answers > 1, 'a function answers for seconds only');
    assert.deepEqual([livePage.isSamePage, livePage.complaints], [true, []]);
    for (const title of ['shows the total with tax', 'pays with one click']) assert.ok(livePage.text.includes(title), livePage.text);
  });

  test('every file is the one Playwright wrote', async () => {
    const truth = reports.flatMap((report) => readGroundTruth(report));
    assert.equal(truth.length, TOTALS.totalTests);
    for (const { title, project, location, files } of truth) {
      const [execution, ...others] = executions.filter((each) => each.title === title && each.browserProject === project);
      assert.deepEqual([others.length, execution?.location], [0, location]);
      const stored = await functions.getAll(`/api/test-run-cases/${execution.id}/files`);
      const hashes = await Promise.all(stored.map(async ({ id }) => {
        const answer = await functions.get(`/api/files/${id}`);
        assert.equal(answer.status, 200, `file ${id} of ${title}`);
        return sha256(Buffer.from(await answer.arrayBuffer()));
      }));
      assert.deepEqual(hashes.toSorted(), files.map((file) => file.sha256).toSorted(), title);
    }
  });

  test('a trace that no function can answer comes and goes through the bucket', async () => {
    const { fileId, hash } = await largeTrace(functions);
    // The second time the copy is there already.
    for (let time = 0; time < 2; time += 1) {
      const sent = await functions.get(`/api/files/${fileId}`, { redirect: 'manual' });
      assert.equal(sent.status, 302, await sent.text());
      assert.ok(sent.headers.get('location').startsWith(addresses.bucket), sent.headers.get('location'));
      const bytes = Buffer.from(await (await fetch(sent.headers.get('location'))).arrayBuffer());
      assert.equal(sha256(bytes), hash);
    }
  });

  // The viewer needs TLS or a loopback origin; the runner has one, and a gateway that lets no more through.
  test('the page of the viewer names a missing CORS rule of the bucket, and opens the trace when it is there', async () => {
    const { fileId } = await largeTrace(runner);
    const opened = await runner.get(`/api/files/${fileId}?viewer=1`, { redirect: 'manual' });
    const address = opened.headers.get('location');
    assert.match(address, /\/viewer\//);
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(address);
    await page.getByText(`Its CORS rules must allow GET from ${new URL(address).origin}`).waitFor();
    await appendFile(process.env.CALLBOARD_GATEWAY_COMMANDS, 'cors\n');
    await eventually('a trace that opens', async () => {
      await page.goto(address);
      const actions = page.getByTestId('actions-tree').getByRole('treeitem');
      return await actions.first().waitFor({ timeout: 10_000 }).then(() => true, () => undefined);
    });
    await context.close();
  });

  /** A run with a trace that is larger than any answer, which comes in through the bucket; the file and its hash. */
  async function largeTrace(to) {
    const small = await readFile(path.join(scratch, 'functions', await someTrace()));
    const trace = largerZip(small, 'resources/0123456789abcdef0123456789abcdef01234567.bin', randomBytes(7_000_000));
    const post = async (where, body) => {
      const answer = await to.get(where, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
      const text = await answer.text();
      assert.equal(answer.status, 200, `${where}: ${text}`);
      return JSON.parse(text);
    };
    const { runId, streamToken } = await post('/api/test-runs/start', { projectName: 'shop', startTime: new Date().toISOString(), environment: 'large' });
    const testCase = { title: 'pays', location: 'tests/pay.spec.ts:9:5', retries: 0 };
    await post(`/api/test-runs/${runId}/events`, { streamToken, testCases: [{ ...testCase, type: 'complete', status: 'failed', duration: 5 }] });
    const hash = sha256(trace);
    const plan = await post('/api/uploads/plan', { runId, streamToken, files: [{ sha256: hash, size: trace.length, kind: 'trace' }] });
    const { upload } = plan.files[0];
    assert.ok(upload.direct, upload.url);
    assert.equal((await fetch(upload.url, { method: 'PUT', body: trace })).status, 200);
    const item = { sha256: hash, kind: 'trace', ticket: upload.ticket, link: { type: 'trace', testCase } };
    const { items: [{ status, fileId }] } = await post('/api/uploads/commit', { runId, streamToken, items: [item] });
    assert.equal(status, 'linked');
    await post(`/api/test-runs/${runId}/finish`, { streamToken, status: 'failed', duration: 5 });
    await eventually('the jobs of the run', async () => ((await to.getJson(`/api/test-runs/${runId}`)).status === 'failed' ? true : undefined));
    return { fileId, hash };
  }

  /** A trace that the run left on disk. */
  async function someTrace() {
    const names = await readdir(path.join(scratch, 'functions'), { recursive: true });
    return names.find((name) => name.endsWith('trace.zip'));
  }

  test('its reports are opened page by page from the other name of the service', async () => {
    const { items } = await functions.getJson(`/api/test-runs/${run.id}/reports`);
    assert.equal(items.length, SHARDS);
    for (const { url } of items) {
      const page = await functions.get(url);
      assert.equal(page.status, 200, url);
      assert.match(await page.text(), /<title>Playwright Test Report<\/title>/);
    }
  });

  test('equals what the local runner makes of the same suite, row by row', async () => {
    const shards = startShards(runner, 'runner');
    const live = await shards[0].line(/^\[callboard\] live: /);
    const runId = Number(/\/test-runs\/(\d+)/.exec(live)[1]);
    await Promise.all(shards.map((shard) => shard.finished));
    await eventually('the end of the run', async () => {
      const now = await runner.getJson(`/api/test-runs/${runId}`);
      return ENDED.includes(now.status) ? now : undefined;
    });
    const [byFunctions, byRunner] = [await rowsOf(functions, run.id), await rowsOf(runner, runId)];
    assert.equal(byFunctions.length, TOTALS.totalTests);
    for (const [index, row] of byFunctions.entries()) assert.deepEqual(row, byRunner[index], row.title);
    const clusters = (to) => to.getAll('/api/failure-clusters').then((all) => all.map(({ title, occurrences, status }) => normal({ title, occurrences, status })).toSorted((a, b) => String(a.title).localeCompare(String(b.title))));
    await eventually('the same failure clusters', async () => {
      const [one, other] = [await clusters(functions), await clusters(runner)];
      return one.length > 0 && JSON.stringify(one) === JSON.stringify(other) ? one : undefined;
    });
  });
});
