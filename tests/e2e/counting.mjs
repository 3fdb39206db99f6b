/**
 * What a run is counted as, for real: each outcome and each way to end a run as a person
 * would count it. Needs `CALLBOARD_URL`; no browser.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { countingDir, linesOfReporter, startPlaywright } from './support/playwright-run.mjs';
import { getAll, getJson, reporterEnvironment, serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
after(() => rm(scratch, { recursive: true, force: true }));

/** Runs the suite; `during` may meddle with it. */
async function counted(args, { streaming = true, during = async () => undefined } = {}) {
  const name = randomUUID();
  const running = startPlaywright([...args, `--output=${path.join(scratch, name)}`], {
    ...reporterEnvironment(), SERVICE_PROJECT_NAME: `counting ${name.slice(0, 8)}`, SERVICE_SPOOL_DIR: path.join(scratch, 'spool'),
    SERVICE_STREAMING: String(streaming), SERVICE_STREAMING_BATCH_DELAY: '50',
  }, countingDir);
  await during(running);
  const { output } = await running.finished;
  const last = linesOfReporter(output).at(-1);
  assert.match(last ?? output, /^\[callboard\] run: /);
  const run = await getJson(`/api/test-runs/${/\/test-runs\/(\d+)/.exec(last)[1]}`);
  return { run, executions: await getAll(`/api/test-runs/${run.id}/executions`), output };
}

function totalsOf(run) {
  const { totalTests, passedTests, failedTests, timedOutTests, flakyTests, skippedTests, didNotRunTests, interruptedTests } = run;
  return { total: totalTests, passed: passedTests, failed: failedTests, timedOut: timedOutTests, flaky: flakyTests, skipped: skippedTests,
    didNotRun: didNotRunTests, interrupted: interruptedTests };
}

const NONE = { total: 0, passed: 0, failed: 0, timedOut: 0, flaky: 0, skipped: 0, didNotRun: 0, interrupted: 0 };

/** Playwright's own sums, as it prints them for people. */
function printed(output) {
  const sum = (word) => Number(new RegExp(`^ {2}(\\d+) ${word}\\b`, 'm').exec(output)?.[1] ?? 0);
  return { passed: sum('passed') + sum('flaky'), failed: sum('failed'), flaky: sum('flaky'), skipped: sum('skipped'),
    didNotRun: sum('did not run'), interrupted: sum('interrupted') };
}

function assertAsPrinted(run, output) {
  const { passed, failed, flaky, skipped, didNotRun, interrupted } = totalsOf(run);
  assert.deepEqual({ passed, failed, flaky, skipped, didNotRun, interrupted }, printed(output));
}

const reasonOf = (executions, title) => executions.filter((each) => each.title === title).map(({ status, didNotRunReason }) => [status, didNotRunReason ?? null]);

for (const streaming of [true, false]) {
  const how = streaming ? 'streamed' : 'sent as a batch';

  test(`every outcome counts once, ${how}`, async () => {
    const { run, executions, output } = await counted(['--project=one', '--retries=0', 'outcomes'], { streaming });
    assert.equal(run.status, 'failed');
    assert.deepEqual(totalsOf(run), { ...NONE, total: 11, passed: 3, failed: 5, timedOut: 1, skipped: 2, didNotRun: 1 });
    assertAsPrinted(run, output);
    assert.deepEqual(reasonOf(executions, 'never gets its turn'), [['didnotrun', 'previous-failure']]);
    const expected = executions.filter(({ expectedFailure }) => expectedFailure).map(({ title, status }) => [title, status]);
    assert.deepEqual(expected, [['fails as expected', 'passed']]);
    assert.equal(executions.find(({ title }) => title === 'passes and should not').status, 'failed');
  });

  test(`attempts of one test are one test, and a serial group is retried as a whole, ${how}`, async () => {
    const { run, executions, output } = await counted(['--project=one', '--retries=1', 'outcomes'], { streaming });
    assert.deepEqual(totalsOf(run), { ...NONE, total: 11, passed: 4, failed: 4, timedOut: 1, flaky: 1, skipped: 2, didNotRun: 1 });
    assertAsPrinted(run, output);
    assert.deepEqual(executions.filter(({ flaky }) => flaky).map(({ title }) => title), ['passes at the second attempt']);
  });

  test(`of a serial group that recovers only the test that failed is flaky, ${how}`, async () => {
    const { run, executions, output } = await counted(['--project=one', '--retries=1', 'recovering'], { streaming });
    assert.deepEqual([run.status, totalsOf(run)], ['passed', { ...NONE, total: 3, passed: 3, flaky: 1 }]);
    assertAsPrinted(run, output);
    assert.deepEqual(executions.filter(({ flaky }) => flaky).map(({ title }) => title), ['works the second time']);
  });

  test(`repetitions of a test are one test that is as good as its worst, ${how}`, async () => {
    const { run, executions } = await counted(
      ['--project=one', '--retries=1', '--repeat-each=3', '--workers=2', 'outcomes', '-g', 'passes$|second attempt|fails$'], { streaming });
    assert.deepEqual(totalsOf(run), { ...NONE, total: 3, passed: 2, failed: 1, flaky: 1 });
    const attempts = Object.fromEntries(executions.map(({ title, attemptCount }) => [title, attemptCount]));
    assert.deepEqual(attempts, { passes: 3, 'passes at the second attempt': 6, fails: 6 });
  });
}

test('a test in two browser projects is two executions of one test case', async () => {
  const { run, executions, output } = await counted(['--retries=0', 'outcomes', '-g', 'passes$|is skipped']);
  assert.equal(run.status, 'passed');
  assert.deepEqual(totalsOf(run), { ...NONE, total: 4, passed: 2, skipped: 2 });
  assertAsPrinted(run, output);
  assert.equal(new Set(executions.map(({ testCaseId }) => testCaseId)).size, 2);
  assert.deepEqual(run.browsers, ['one', 'two']);
});

test('what a limit of failures leaves out did not run', async () => {
  const { run, executions, output } = await counted(['--project=one', '--retries=0', '--max-failures=1', 'outcomes']);
  assert.equal(run.status, 'failed');
  assert.deepEqual(totalsOf(run), { ...NONE, total: 11, passed: 1, failed: 1, didNotRun: 9 });
  assertAsPrinted(run, output);
  assert.deepEqual(reasonOf(executions, 'hangs'), [['didnotrun', 'max-failures']]);
});

test('what a global timeout cuts off is interrupted, and what it leaves out did not run', async () => {
  // Long enough for the first test to end on a busy machine, and shorter than the second takes.
  const { run, executions } = await counted(['--project=one', '--retries=0', '--global-timeout=12000', 'slow']);
  assert.equal(run.status, 'timedout');
  assert.deepEqual(totalsOf(run), { ...NONE, total: 3, passed: 1, interrupted: 1, didNotRun: 1 });
  assert.deepEqual(reasonOf(executions, 'takes a while 3'), [['didnotrun', 'global-timeout']]);
});

test('a run that a person breaks off is interrupted, with what it had', async () => {
  const { run, executions } = await counted(['--project=one', '--retries=0', 'slow'], {
    async during(running) {
      await running.line(/takes a while 1/);
      setTimeout(() => running.signal('SIGINT'), 500);
    },
  });
  assert.deepEqual([run.status, run.endReason], ['interrupted', 'client']);
  assert.deepEqual(totalsOf(run), { ...NONE, total: 3, passed: 1, interrupted: 1, didNotRun: 1 });
  assert.deepEqual(reasonOf(executions, 'takes a while 3'), [['didnotrun', 'interrupted']]);
});
