/**
 * Runs that are sent while they go on, for real: what can be seen meanwhile, what shards
 * make together, and what becomes of a run when the line to the service breaks. Needs
 * `CALLBOARD_URL`; `CHROMIUM_PATH` when Chromium is not at /usr/bin/chromium.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cuttableLine } from './support/cuttable-line.mjs';
import { eventStream } from './support/event-stream.mjs';
import { callboardReporter, linesOfReporter, runPlaywright, startPlaywright } from './support/playwright-run.mjs';
import { getAll, getJson, reporterEnvironment, serviceUrl } from './support/service.mjs';

if (!serviceUrl) {
  throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');
}

/** Quick ones, one of them flaky with files. */
const SOME = ['--project=desktop', '--reporter=dot,callboard-reporter', '-g', 'opens the start page|adds an item|applies a coupon'];
const SOME_TOTALS = { totalTests: 3, passedTests: 3, failedTests: 0, flakyTests: 1 };

const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
after(() => rm(scratch, { recursive: true, force: true }));

function settings(name) {
  return {
    ...reporterEnvironment(),
    SERVICE_PROJECT_NAME: `${name} ${randomUUID().slice(0, 8)}`,
    SERVICE_SPOOL_DIR: path.join(scratch, name, 'spool'),
    PLAYWRIGHT_HTML_OUTPUT_DIR: path.join(scratch, name, 'report'),
  };
}

const output = (name) => `--output=${path.join(scratch, name, 'results')}`;
const totalsOf = ({ totalTests, passedTests, failedTests, flakyTests }) => ({ totalTests, passedTests, failedTests, flakyTests });
const idIn = (line) => Number(/\/test-runs\/(\d+)/.exec(line)[1]);

async function runsOf(projectName) {
  const projects = await getAll('/api/projects');
  const project = projects.find(({ name }) => name === projectName);
  return project ? getAll(`/api/projects/${project.id}/test-runs`) : [];
}

/** The flaky test of the selection came with the files of its first attempt. */
async function assertFilesArrived(runId) {
  const executions = await getAll(`/api/test-runs/${runId}/executions`);
  const coupon = executions.find(({ title }) => title === 'applies a coupon');
  const files = await getAll(`/api/test-run-cases/${coupon.id}/files`);
  assert.deepEqual(files.map(({ name }) => name).sort(), ['error-context', 'screenshot', 'trace']);
}

async function spooled(env) {
  const names = await readdir(env.SERVICE_SPOOL_DIR, { recursive: true }).catch(() => []);
  return names.filter((name) => name.endsWith('.json.gz'));
}

describe('a run that goes on', () => {
  const env = settings('live');
  let events;
  let duringRun;
  let runId;
  let finished;

  before(async () => {
    const running = startPlaywright([...SOME, output('live'), '--workers=1'], { ...env, SERVICE_STREAMING_BATCH_DELAY: '50' });
    runId = idIn(await running.line(/^\[callboard\] live: /));
    const stream = eventStream(`/api/test-runs/${runId}/stream`);
    await stream.until((all) => all.some(({ type }) => type === 'test-completed'));
    duringRun = await getJson(`/api/test-runs/${runId}`);
    finished = await running.finished;
    events = await stream.closed;
  });

  test('can be seen with the results it has so far', () => {
    assert.equal(duringRun.status, 'running');
    assert.ok(duringRun.totalTests >= 1 && duringRun.totalTests <= 3, String(duringRun.totalTests));
  });

  test('tells everybody who listens what happens, in order, and that it is over', () => {
    const types = events.map(({ type }) => type);
    assert.equal(types[0], 'init');
    assert.equal(types.at(-1), 'run-finished');
    for (const type of ['test-begin', 'test-completed', 'run-progress']) assert.ok(types.includes(type), type);
    const seqs = events.map(({ seq }) => seq).filter((seq) => typeof seq === 'number');
    assert.deepEqual(seqs, [...seqs].sort((one, other) => one - other));
  });

  test('ends with every test, every file and one final status', async () => {
    const run = await getJson(`/api/test-runs/${runId}`);
    assert.equal(finished.exitCode, 0);
    assert.equal(run.status, 'passed');
    assert.deepEqual(totalsOf(run), SOME_TOTALS);
    await assertFilesArrived(runId);
    assert.equal((await runsOf(env.SERVICE_PROJECT_NAME)).length, 1);
    assert.deepEqual(linesOfReporter(finished.output).map(idIn), [runId, runId]);
  });
});

test('two shards of one pipeline become one run with the tests of both', async () => {
  const env = { ...settings('shards'), SERVICE_RUN_LABEL: randomUUID() };
  const shard = (index) => runPlaywright(
    ['--reporter=dot,callboard-reporter', '--project=desktop', '-g', 'opens|adds|keeps|pays by', `--shard=${index}/2`,
      '--workers=1', `${output(`shard-${index}`)}`], env);
  const finished = await Promise.all([shard(1), shard(2)]);
  assert.deepEqual(finished.map(({ exitCode }) => exitCode), [0, 0]);
  const runs = await runsOf(env.SERVICE_PROJECT_NAME);
  assert.equal(runs.length, 1, finished.map(({ output: said }) => linesOfReporter(said).join()).join('; '));
  const run = await getJson(`/api/test-runs/${runs[0].id}`);
  assert.equal(run.status, 'passed');
  assert.deepEqual(totalsOf(run), { totalTests: 4, passedTests: 3, failedTests: 0, flakyTests: 0 });
});

describe('a line that breaks', () => {
  let line;
  before(async () => {
    line = await cuttableLine(serviceUrl);
  });
  after(() => line.close());

  test('and is mended while tests run costs nothing', async () => {
    const env = { ...settings('mended'), SERVICE_URL: line.url, SERVICE_STREAMING_BATCH_DELAY: '50' };
    const running = startPlaywright([...SOME, output('mended')], env);
    const runId = idIn(await running.line(/^\[callboard\] live: /));
    await line.traffic();
    line.cut();
    setTimeout(() => line.mend(), 1_500);
    const { exitCode, output: said } = await running.finished;
    assert.equal(exitCode, 0);
    const run = await getJson(`/api/test-runs/${runId}`);
    assert.equal(run.status, 'passed', linesOfReporter(said).join());
    assert.deepEqual(totalsOf(run), SOME_TOTALS);
    await assertFilesArrived(runId);
    assert.equal((await runsOf(env.SERVICE_PROJECT_NAME)).length, 1);
    assert.deepEqual(await spooled(env), []);
  });

  test('for good leaves the run on disk, and flush completes the run that was begun', async () => {
    const env = { ...settings('spooled'), SERVICE_URL: line.url, SERVICE_FINALIZE_TIMEOUT: '2000' };
    const running = startPlaywright([...SOME, output('spooled')], env);
    const runId = idIn(await running.line(/^\[callboard\] live: /));
    line.cut();
    const { exitCode, output: said } = await running.finished;
    assert.equal(exitCode, 0);
    assert.match(linesOfReporter(said).at(-1), /offline, spooled to .*\.json\.gz$/);
    assert.equal((await spooled(env)).length, 1);
    line.mend();
    const flushed = await callboardReporter(['flush'], env);
    assert.equal(flushed.exitCode, 0, flushed.output);
    assert.equal(idIn(flushed.output), runId);
    const run = await getJson(`/api/test-runs/${runId}`);
    assert.equal(run.status, 'passed');
    assert.deepEqual(totalsOf(run), SOME_TOTALS);
    await assertFilesArrived(runId);
    assert.equal((await runsOf(env.SERVICE_PROJECT_NAME)).length, 1);
    assert.deepEqual(await spooled(env), []);
  });
});
