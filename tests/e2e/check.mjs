/**
 * Runs the shop's suite for real with the reporter, then asks the service over REST
 * whether the run arrived whole. Needs `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium
 * is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readGroundTruth } from './support/ground-truth.mjs';
import { linesOfReporter, runPlaywright } from './support/playwright-run.mjs';
import { get, getAll, getBytes, getJson, reporterEnvironment, serviceUrl, sha256 } from './support/service.mjs';
import { actionsInViewer } from './support/trace-viewer.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

if (!existsSync(new URL('node_modules/callboard-reporter/dist/index.js', import.meta.url))) {
  throw new Error('the reporter is not built: run "npm ci && npm run build" in reporter/, then "npm ci" here');
}

/** What every test of the suite must look like on the service, in both browser projects. */
const EXPECTED = {
  'opens the start page': { status: 'passed', attempts: ['passed'] },
  'adds an item': { status: 'passed', attempts: ['passed'] },
  'shows the total with tax': { status: 'failed', attempts: ['failed', 'failed'], error: /toHaveText/ },
  'applies a coupon': { status: 'passed', flaky: true, attempts: ['failed', 'passed'] },
  'confirms the payment': { status: 'timedout', attempts: ['timedout', 'timedout'], error: /Test timeout of 1500ms exceeded/ },
  'pays with one click': { status: 'failed', attempts: ['failed', 'failed'], error: /getByTestId\('pay-now'\)/ },
  'keeps the receipt': { status: 'passed', attempts: ['passed'] },
  'pays by invoice': { status: 'skipped', attempts: ['skipped'] },
  'refuses an expired card': { status: 'passed', expectedFailure: true },
};
const PROJECTS = ['desktop', 'mobile'];

describe('a real Playwright run', () => {
  const projectName = `shop ${randomUUID().slice(0, 8)}`;
  let scratch;
  let finished;
  let output;
  let run;
  let executions;
  let truth;

  before(async () => {
    scratch = await mkdtemp(path.join(tmpdir(), 'callboard-e2e-'));
    const outputFile = path.join(scratch, 'run.json');
    finished = await runPlaywright([], {
      ...reporterEnvironment(),
      SERVICE_PROJECT_NAME: projectName,
      SERVICE_ENVIRONMENT: 'check',
      SERVICE_OUTPUT_FILE: outputFile,
      SERVICE_SPOOL_DIR: path.join(scratch, 'spool'),
      GITHUB_STEP_SUMMARY: path.join(scratch, 'summary.md'),
    });
    truth = readGroundTruth();
    output = JSON.parse(await readFile(outputFile, 'utf8').catch(() => {
      throw new Error(`the reporter sent nothing; it said: ${linesOfReporter(finished.output).join('; ') || 'nothing'}`);
    }));
    run = await getJson(`/api/test-runs/${output.runId}`);
    executions = await getAll(`/api/test-runs/${output.runId}/executions?limit=5`);
  });

  after(() => rm(scratch, { recursive: true, force: true }));

  const executionOf = (title, project) => {
    const found = executions.filter((each) => each.title === title && each.browserProject === project);
    assert.equal(found.length, 1, `${title} in ${project} is there once`);
    return found[0];
  };

  test('ends with the exit code of a failing run without the reporter', async () => {
    const without = await runPlaywright(
      ['--reporter=dot', '--project=desktop', '--retries=0', '-g', 'pays with one click', '--output=test-results/without']);
    assert.equal(finished.exitCode, without.exitCode);
    assert.equal(finished.exitCode, 1);
  });

  test('says where it is when it begins and when it is over', () => {
    assert.deepEqual(linesOfReporter(finished.output), [`[callboard] live: ${output.runUrl}`, `[callboard] run: ${output.runUrl}`]);
    assert.ok(output.runUrl.endsWith(`/test-runs/${output.runId}`), output.runUrl);
  });

  test('lists its failing tests, each with what is wrong and a link, in the summary of the job', async () => {
    const lines = (await readFile(path.join(scratch, 'summary.md'), 'utf8')).split('\n').filter((line) => line.startsWith('- ['));
    const failing = executions.filter(({ status }) => status === 'failed' || status === 'timedout');
    assert.equal(lines.length, failing.length);
    for (const { id, browserProject, error } of failing) {
      const line = lines.find((each) => each.includes(`/test-run-cases/${id}) (\`${browserProject}\`): `));
      assert.ok(line, `${id} is listed:\n${lines.join('\n')}`);
      assert.ok(line.endsWith(`\`${error}\``), line);
    }
  });

  test('belongs to its project and ended as failed', () => {
    assert.deepEqual(
      { project: run.projectName, status: run.status, environment: run.environment, isFullRun: run.isFullRun },
      { project: projectName, status: 'failed', environment: 'check', isFullRun: true });
    assert.deepEqual(run.metadata.tags, ['end-to-end']);
  });

  test('is counted in tests, not in attempts', () => {
    const { totalTests, passedTests, failedTests, timedOutTests, skippedTests, flakyTests, didNotRunTests } = run;
    assert.deepEqual(
      { totalTests, passedTests, failedTests, timedOutTests, skippedTests, flakyTests, didNotRunTests },
      { totalTests: 18, passedTests: 10, failedTests: 6, timedOutTests: 2, skippedTests: 2, flakyTests: 2, didNotRunTests: 0 });
    assert.equal(executions.length, 18);
  });

  for (const [title, expected] of Object.entries(EXPECTED)) {
    test(`"${title}" arrived as ${expected.flaky ? 'flaky' : expected.status} in both browser projects`, async () => {
      for (const project of PROJECTS) {
        const { id, status, flaky, expectedFailure } = executionOf(title, project);
        assert.deepEqual(
          { status, flaky, expectedFailure },
          { status: expected.status, flaky: expected.flaky ?? false, expectedFailure: expected.expectedFailure ?? false });
        const detail = await getJson(`/api/test-run-cases/${id}`);
        if (expected.attempts) assert.deepEqual(detail.attempts.map((attempt) => attempt.status), expected.attempts);
        if (expected.error) assert.match(detail.errorPlain, expected.error);
      }
    });
  }

  test('every test is where Playwright says it is', () => {
    assert.equal(truth.length, 18);
    for (const { title, project, location } of truth) assert.equal(executionOf(title, project).location, location);
  });

  test('describe blocks, tags, owner and source of a test arrived', async () => {
    const coupon = await getJson(`/api/test-run-cases/${executionOf('applies a coupon', 'mobile').id}`);
    assert.deepEqual(coupon.suitePath, ['Cart', 'Coupons']);
    assert.deepEqual(executionOf('adds an item', 'desktop').tags.toSorted(), ['cart', 'smoke']);
    const payment = await getJson(`/api/test-run-cases/${executionOf('confirms the payment', 'desktop').id}`);
    assert.equal(payment.owner, 'payments');
    assert.match(payment.evidence.testSource, /Confirm payment/);
    assert.ok(payment.evidence.steps.some((step) => /Click|click/.test(step.title)));
  });

  test('a fixed wait is counted as wasted time', () => {
    assert.ok(executionOf('keeps the receipt', 'desktop').wastedTimeMs >= 50);
  });

  test('every attachment and trace is stored byte for byte, at its attempt', async () => {
    for (const { title, project, files } of truth) {
      const stored = await getAll(`/api/test-run-cases/${executionOf(title, project).id}/files`);
      const found = await Promise.all(stored.map(async (file) => ({
        retry: file.attempt?.retry ?? 0,
        name: file.name,
        sha256: sha256(await getBytes(`/api/files/${file.id}?download=1`)),
      })));
      assert.deepEqual(sorted(found), sorted(files), `files of ${title} in ${project}`);
    }
  });

  test('every failed attempt has its trace, and it opens in the trace viewer', async () => {
    const traces = await getJson(`/api/test-run-cases/${executionOf('pays with one click', 'desktop').id}/traces`);
    assert.deepEqual(traces.items.map((trace) => trace.attempt.retry), [0, 1]);
    const actions = await actionsInViewer(await getBytes(`/api/files/${traces.items[0].id}?download=1`));
    assert.ok(actions.some((action) => action.includes('Click') && action.includes('pay-now')), actions.join(' | '));
  });

  test('what the page was like arrived, without values it stores or is asked with', async () => {
    const coupon = await getJson(`/api/test-run-cases/${executionOf('applies a coupon', 'desktop').id}?attempt=0`);
    const { networkRequests, consoleLogs, webVitals, pageState, ariaSnapshot } = coupon.evidence;
    const stock = networkRequests.find(({ normalizedUrl }) => normalizedUrl.startsWith('/stock'));
    assert.deepEqual(
      { method: stock.method, status: stock.status, type: stock.resourceType, asked: stock.normalizedUrl },
      { method: 'GET', status: 200, type: 'fetch', asked: '/stock?token=<redacted>' });
    assert.equal(stock.serverLogs[0].message, 'the stock is low');
    assert.equal(stock.serverTraces[0].name, 'GET /stock');
    assert.ok(consoleLogs.some(({ type, text }) => type === 'warning' && text === 'coupons are slow today'));
    assert.ok(webVitals.navigation.ttfb >= 0 && webVitals.paint.firstContentfulPaint > 0);
    assert.deepEqual(pageState.sessionStorage, [{ key: 'coupon', length: 13 }]);
    assert.deepEqual(pageState.cookies.map(({ name }) => name), ['visitor']);
    assert.match(ariaSnapshot, /status.*Try again later/);
    assert.ok(!/(SUMMER|COOKIE|QUERY)-SECRET/.test(JSON.stringify(coupon)));
  });

  test('the HTML report is there and is the one Playwright wrote', async () => {
    const reports = await getJson(`/api/test-runs/${output.runId}/reports`);
    assert.deepEqual(reports.items.map(({ type, label }) => ({ type, label })), [{ type: 'html', label: 'HTML Report' }]);
    const written = await readFile(fileURLToPath(new URL('playwright-report/index.html', import.meta.url)));
    assert.equal(sha256(await getBytes(`/api/files/${reports.items[0].path}?download=1`)), sha256(written));
    const page = await get(reports.items[0].url);
    assert.equal(page.status, 200);
    assert.match(page.headers.get('content-type'), /^text\/html/);
  });
});

describe('a run that cannot be sent', () => {
  const spoolDir = path.join(tmpdir(), `callboard-e2e-spool-${randomUUID()}`);
  const unreachable = { SERVICE_URL: 'http://127.0.0.1:9', SERVICE_FINALIZE_TIMEOUT: '500', SERVICE_SPOOL_DIR: spoolDir };
  after(() => rm(spoolDir, { recursive: true, force: true }));
  const only = (title) => ['--project=desktop', '-g', title, '--output=test-results/unsent'];

  for (const [title, exitCode] of [['opens the start page', 0], ['pays with one click', 1]]) {
    test(`"${title}" still ends with exit code ${exitCode} when the server is down`, async () => {
      const finished = await runPlaywright(only(title), unreachable);
      assert.equal(finished.exitCode, exitCode);
      const lines = linesOfReporter(finished.output);
      assert.equal(lines.length, 1, lines.join('\n'));
      assert.match(lines[0], /offline, spooled to .*\.json\.gz$/);
    });
  }

  test('without an address the reporter says nothing', async () => {
    const finished = await runPlaywright(only('opens the start page'));
    assert.equal(finished.exitCode, 0);
    assert.deepEqual(linesOfReporter(finished.output), []);
  });
});

function sorted(files) {
  return files.map(({ retry, name, sha256: hash }) => `${retry} ${name} ${hash}`).sort();
}
