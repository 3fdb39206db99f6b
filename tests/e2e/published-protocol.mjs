/**
 * What the reporters that others have published say on the wire, and what becomes of it: each call is recorded
 * between their users' runs and the service.
 *   CALLBOARD_URL=… PUBLISHED_REPORTER=@piwitests/reporter node --test published-protocol.mjs
 * The service must give up on a run as early as it can be told to: `SERVICE_RUN_STALE_MS=30000`,
 * `SERVICE_SHARD_WAIT_MS=30000`, `SERVICE_SETUP_STALE_MS=60000`.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { eventStream } from './support/event-stream.mjs';
import { faultyLine } from './support/faulty-line.mjs';
import { countingDir, linesOfReporter, runPlaywright, startPlaywright } from './support/playwright-run.mjs';
import { count, countingArguments, FILES_TOTALS, named, reporter, runOf, runsOf, scratch, settings, totalsOf } from './support/published-reporter.mjs';
import { getAll, getBytes, getJson, reporterEnvironment, serviceUrl } from './support/service.mjs';

if (!serviceUrl || !reporter) {
  throw new Error('CALLBOARD_URL and PUBLISHED_REPORTER must say what is tested, see the head of this file');
}

const FILES = ['--project=one', 'files'];
const MIB = 1024 * 1024;

const lines = [];
after(() => Promise.all(lines.map((line) => line.close())));

/** A line that records what is said over it. */
async function recordingLine() {
  const line = await faultyLine(serviceUrl);
  lines.push(line);
  const said = (call) => line.exchanges.filter((each) => each.call === call);
  return {
    ...line,
    said,
    statuses: (call) => said(call).map(({ answer }) => answer.status),
    asked: (call) => said(call).map(({ headers, body }) => JSON.parse(headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body)),
    answered: (call) => said(call).map(({ answer }) => JSON.parse(answer.body)),
  };
}

async function post(where, body) {
  const response = await fetch(new URL(where, serviceUrl), {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  });
  return { answer: await response.json(), http: response.status };
}

const executionsOf = (run) => getAll(`/api/test-runs/${run}/executions`);

const ONE_BY_ONE = { concurrency: 1 };

// The first takes a minute and a half in which little is done; the others come one after another meanwhile.
describe('between a published reporter and the service,', { concurrency: 2 }, () => {
  describe('a run that takes longer than the service waits', ONE_BY_ONE, () => {
    /** Is there when they have taken long enough. */
    const until = path.join(scratch, 'until');
    const prepared = { project: named('published') };
    const sharded = { project: named('published') };

    // Both wait at the same time, for as long as the service takes to give up on the shard that is not heard of.
    before(async () => {
      try {
        await beginPrepared();
        await beginSharded();
        sharded.abandoned = await abandoned((await runsOf(sharded.project))[0].id);
        prepared.meanwhile = await getJson(`/api/test-runs/${prepared.run}`);
        prepared.said = prepared.line.asked('events');
      } finally {
        writeFileSync(until, '');
      }
    });

    /** One test, and much before it. */
    async function beginPrepared() {
      prepared.line = await recordingLine();
      prepared.running = startPlaywright(countingArguments(['--project=one', 'prepared']),
        settings(prepared.line.url, prepared.project, { COUNTING_UNTIL: until }), countingDir);
      prepared.run = /\/test-runs\/(\d+)/.exec(await prepared.running.line(/Watch live: /))[1];
      prepared.stream = eventStream(`/api/test-runs/${prepared.run}/stream`);
      await prepared.stream.until((events) => events.some(({ type }) => type === 'step-end'));
    }

    /** One shard that is over, and one that is not heard of once it said that it will come. */
    async function beginSharded() {
      sharded.line = await recordingLine();
      const env = settings(serviceUrl, sharded.project, { PIWI_RUN_LABEL: randomUUID() });
      const shard = (index) => countingArguments([...FILES, '--fully-parallel', `--shard=${index}/2`]);
      // They note what was set up in this folder, which shards on machines of their own do not share.
      const elsewhere = path.join(scratch, 'elsewhere');
      mkdirSync(elsewhere);
      sharded.second = startPlaywright(shard(2),
        { ...env, TMPDIR: elsewhere, PIWI_DASHBOARD_URL: sharded.line.url, PIWI_VERBOSE: 'true', COUNTING_SETUP: '1', COUNTING_UNTIL: until }, countingDir);
      await sharded.second.line(/initialising run/);
      await runPlaywright(shard(1), env, countingDir);
    }

    async function abandoned(id) {
      let isOver = false;
      prepared.running.finished.finally(() => { isOver = true; });
      for (;;) {
        const run = await getJson(`/api/test-runs/${id}`);
        if (run.status === 'interrupted') return run;
        assert.ok(!isOver, `the service does not give up on ${JSON.stringify(run)}`);
        await delay(500);
      }
    }

    test('is kept alive by its steps alone', async () => {
      const { output } = await prepared.running.finished;
      const types = prepared.said.flatMap(({ testCases }) => testCases.map(({ type }) => type));
      assert.deepEqual(types.filter((type) => !type.startsWith('step-')), ['begin']);
      assert.ok(prepared.said.length > 10, `${prepared.said.length} batches`);
      assert.deepEqual(prepared.line.calls.filter((call) => call === 'heartbeat'), []);
      assert.deepEqual(new Set(prepared.line.statuses('events')), new Set([200]), output);
      assert.equal(prepared.meanwhile.status, 'running');
      // Had the service given up on it, the next step would have revived it, and its stream would say so.
      const events = await prepared.stream.closed;
      assert.deepEqual(events.filter(({ type }) => type === 'run-status'), []);
      assert.equal((await getJson(`/api/test-runs/${prepared.run}`)).status, 'passed', output);
    });

    test('is joined again by the shard that it was given up for', async () => {
      const { output } = await sharded.second.finished;
      const { line, abandoned: { id, endReason } } = sharded;
      assert.equal(endReason, 'shards_missing');
      const [setup] = line.answered('setup');
      assert.deepEqual([setup.runId, line.statuses('begin'), line.answered('begin')[0].code], [id, [409], 'begin_not_possible'], output);
      assert.deepEqual([line.statuses('start'), line.answered('start')[0].runId], [[200], id], output);
      const runs = await runsOf(sharded.project);
      assert.deepEqual(runs.map((run) => [run.id, run.status, run.shardsFinished, totalsOf(run)]), [[id, 'failed', 2, FILES_TOTALS]], output);
    });
  });

  describe('a run', ONE_BY_ONE, () => {
    for (const [how, call, env] of [
      ['streamed', 'events', { PIWI_STREAMING_BATCH_SIZE: '10000', PIWI_STREAMING_BATCH_DELAY: '600000' }],
      ['as a batch in chunks', 'upload', { PIWI_STREAMING: 'false' }],
    ]) {
      test(`of 11 MB is stored in one go, ${how}`, async () => {
        const line = await recordingLine();
        const finished = await count(settings(line.url, named('published'), env), ['--project=one', 'wordy']);
        const [largest] = line.said(call).sort((a, b) => b.body.length - a.body.length);
        assert.ok(largest?.body.length >= 11 * MIB, `${largest?.body.length} bytes`);
        assert.equal(largest.answer.status, 200, finished.output);
        if (call === 'upload') assert.deepEqual([largest.headers['transfer-encoding'], largest.headers['content-length']], ['chunked', undefined]);
        const run = runOf(finished);
        const { status, totalTests, passedTests } = await getJson(`/api/test-runs/${run}`);
        assert.deepEqual([status, totalTests, passedTests], ['passed', 10, 10], finished.output);
        for (const { id } of await executionsOf(run)) {
          const { evidence } = await getJson(`/api/test-run-cases/${id}`);
          const steps = evidence.steps.filter(({ title }) => title.includes('goes on')).map(({ title }) => title.split(' ')[0]);
          assert.deepEqual(steps, Array.from({ length: 400 }, (_, index) => String(index + 1)));
        }
      });
    }

    test('that is set up first is begun once, and is one run', async () => {
      const line = await recordingLine();
      let again;
      // The call that began it comes a second time, while it goes on.
      line.with((call, time) => {
        if (call === 'events' && time === 1) again = post(line.said('begin')[0].path, line.asked('begin')[0]);
      });
      const project = named('published');
      const { output } = await count(settings(line.url, project, { COUNTING_SETUP: '1' }), FILES);
      const order = line.calls.filter((call, index) => line.calls.indexOf(call) === index && call !== 'check' && call !== 'case-files');
      assert.deepEqual(order, ['setup', 'begin', 'events', 'finish', 'upload'], output);
      const runs = await runsOf(project);
      assert.deepEqual(runs.map((run) => [run.id, run.status, totalsOf(run)]), [[line.answered('setup')[0].runId, 'failed', FILES_TOTALS]], output);
      const { http, answer } = await again;
      assert.deepEqual([http, answer.code], [409, 'begin_not_possible']);
    });

    test('is the same from a reporter that tells with each attempt what was tried before', async () => {
      const line = await recordingLine();
      const suite = ['--project=one', '--repeat-each=2', 'outcomes', 'recovering', '-g', 'second|fails$|skipped|first'];
      const ours = {
        ...reporterEnvironment(), SERVICE_URL: line.url, SERVICE_PROJECT_NAME: named('published'), SERVICE_SPOOL_DIR: path.join(scratch, 'spool'),
        PUBLISHED_REPORTER: 'callboard-reporter',
      };
      const told = () => line.asked('events').flatMap(({ testCases }) => testCases).filter(({ type }) => type === 'complete');
      const without = runOf(await count(settings(line.url, named('published')), suite));
      assert.deepEqual(told().filter(({ attempts }) => attempts), []);
      line.with(() => undefined);
      const { output } = await count(ours, suite);
      assert.ok(told().every(({ attempts, retries }) => attempts.length === retries + 1), output);
      const withAttempts = /\/test-runs\/(\d+)/.exec(linesOfReporter(output).at(-1))[1];
      assert.deepEqual(await rowsOf(without), await rowsOf(withAttempts));
    });

    /** What is stored of the tests of a run, but for how long they took and what only one of the two tells. */
    async function rowsOf(run) {
      // The published reporters begin paths at their working directory, ours at the root of the work tree.
      const inSuite = (location) => location.replace(/^.*\/(?=tests\/)/, '');
      const rows = await Promise.all((await executionsOf(run)).map(async ({ id, title, location, status, flaky, expectedFailure, retries, attemptCount,
        browserProject, workerIndex, error, didNotRunReason }) => {
        const { attempts } = await getJson(`/api/test-run-cases/${id}`);
        return {
          title, location: inSuite(location), status, flaky, expectedFailure, retries, attemptCount, browserProject, workerIndex, error, didNotRunReason,
          // Of one that decides nothing, because others did run, it is told which repetition it was, or it is not known.
          attempts: attempts.map(({ retry, repetition, status: how, error: why, deciding, superseded }) =>
            [retry, superseded || repetition, how, why, deciding]),
        };
      }));
      return rows.sort((a, b) => (a.location < b.location ? -1 : 1));
    }
  });

  describe('what was kept of a run that could not be ended', ONE_BY_ONE, () => {
    let recovery;
    let answer;
    let runs;
    let first;
    before(async () => {
      const line = await recordingLine();
      const project = named('published');
      line.with((call) => (['finish', 'upload', 'submit'].includes(call) ? 'answered 500' : undefined));
      const { output } = await count(settings(line.url, project), FILES);
      [first] = line.answered('start');
      const [{ startTime }] = line.asked('start');
      line.with(() => undefined);
      await count(settings(line.url, project), FILES);
      [recovery] = line.asked('submit');
      [answer] = line.answered('submit');
      assert.equal(recovery?.startTime, startTime, output);
      runs = await runsOf(project);
    });

    test('goes into that run, although it does not say which it is', async () => {
      assert.deepEqual(['instanceId', 'clientRunId', 'shardIndex'].filter((key) => key in recovery), []);
      assert.deepEqual([answer.runId, answer.duplicate], [first.runId, true]);
      assert.deepEqual(runs.map((run) => [run.status, totalsOf(run)]), Array(2).fill(['failed', FILES_TOTALS]));
      assert.equal(runs[0].id, first.runId);
      const told = async ({ id }) => (await executionsOf(id)).map(({ title, status, flaky, attemptCount }) => [title, status, flaky, attemptCount]).sort();
      assert.deepEqual(await told(runs[0]), await told(runs[1]));
    });

    test('is two runs when it comes twice and nothing tells that it is the same', async () => {
      const { reporterVersion: _version, ...plain } = { ...recovery, projectName: named('published') };
      const answers = [await post('/api/test-runs/submit', plain), await post('/api/test-runs/submit', plain)];
      assert.deepEqual(answers.map(({ http, answer: { duplicate } }) => [http, duplicate]), Array(2).fill([200, false]));
      const stored = await runsOf(plain.projectName);
      assert.deepEqual(stored.map((run) => [run.id, run.status, totalsOf(run)]), answers.map(({ answer: { runId } }) => [runId, 'failed', FILES_TOTALS]));
    });
  });

  describe('the folder of a report', ONE_BY_ONE, () => {
    /** Runs where such a folder is, which is where they look for it. */
    async function reported(files) {
      const line = await recordingLine();
      const folder = path.join(scratch, randomUUID());
      mkdirSync(path.join(folder, 'playwright-report'), { recursive: true });
      // To this system a backslash is a letter like others, to the service it parts folders as where such reports are from.
      for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, 'playwright-report', name), content);
      const finished = await runPlaywright(countingArguments(['-c', countingDir, ...FILES]), settings(line.url, named('published')), folder);
      const run = await getJson(`/api/test-runs/${runOf(finished)}`);
      assert.deepEqual([run.status, totalsOf(run)], ['failed', FILES_TOTALS], finished.output);
      assert.deepEqual(line.statuses('upload'), [200], finished.output);
      const { items } = await getJson(`/api/test-runs/${run.id}/reports`);
      return { reports: items, answer: line.answered('upload')[0] };
    }

    test('is served where its paths are those of Windows', async () => {
      const { reports } = await reported({ 'index.html': '<p>A report.</p>', 'data\\deep\\style.css': 'p { color: red }' });
      assert.deepEqual(reports.map(({ type }) => type), ['html']);
      const base = reports[0].path.replace(/index\.html$/, '');
      assert.equal(String(await getBytes(`/api/files/${base}data/deep/style.css`)), 'p { color: red }');
    });

    test('is left out when a path leads out of it, and its run is not', async () => {
      const { reports, answer } = await reported({ 'index.html': '<p>A report.</p>', '..\\..\\evil.html': '<p>Elsewhere.</p>' });
      assert.deepEqual(reports, []);
      assert.deepEqual(answer.warnings.map(({ code }) => code), ['unsafe_report']);
    });
  });
});
