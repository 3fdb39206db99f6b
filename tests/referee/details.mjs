/** What the author of a test wrote about a skip, and where a failure was, is readable wherever the test is. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runIdOf } from './support/compare.mjs';
import { RELEASES, suitesFor } from './support/playwright.mjs';
import { readReport } from './support/report.mjs';
import { getAll, getJson, getText } from './support/service.mjs';

describe('details of a run', () => {
  const suites = suitesFor(RELEASES[0]);
  let runId;
  let executions;

  before(async () => {
    const run = await suites.run('outcomes', ['test', '--project=main', '--no-deps', '--retries=0', 'skips', 'steps', 'soft', 'hooks.spec'], { project: 'details' });
    runId = runIdOf(run, 'live');
    executions = await getAll(`/api/test-runs/${runId}/executions`);
  });
  after(() => suites.remove());

  const named = (...path) => {
    const found = executions.find(({ suitePath, title }) => JSON.stringify([...suitePath, title]) === JSON.stringify(path));
    assert.ok(found, path.join(' › '));
    return found;
  };
  const stepsOf = async ({ id }) => (await getJson(`/api/test-run-cases/${id}?include=steps`)).evidence.steps;

  const REASONS = {
    'the printer is out of paper': ['skips itself with a reason'],
    'waiting for SHOP-12': ['waits for a repair'],
    'no customer today': ['before each, skipping', 'is the first'],
    'no shop today': ['before all, skipping', 'is the first'],
  };

  for (const [reason, path] of Object.entries(REASONS)) {
    test(`the reason of a skip is readable: ${reason}`, async () => {
      const { id, status, skipReason, error } = named(...path);
      assert.deepEqual({ status, skipReason, error }, { status: 'skipped', skipReason: reason, error: null }, 'in lists');
      const [page, rest] = await Promise.all([getText(`/test-run-cases/${id}`), getJson(`/api/test-run-cases/${id}?include=none`)]);
      assert.ok(page.includes(reason), 'on its page');
      assert.equal(rest.skipReason, reason, 'over REST');
      assert.ok(!('annotations' in rest), 'what was not asked for is left out');
    });
  }

  test('the reasons of skips are in every export and on the page of the run', async () => {
    const [page, ...exports] = await Promise.all([
      getText(`/test-runs/${runId}`), ...['junit', 'ctrf', 'csv'].map((format) => getText(`/api/test-runs/${runId}/export?format=${format}`)),
    ]);
    const lacking = (text) => Object.keys(REASONS).filter((reason) => !text.includes(reason));
    assert.deepEqual([page, ...exports].map(lacking), [[], [], [], []]);
    assert.match(exports[0], /<skipped message="the printer is out of paper"\/>/);
  });

  test('every repetition is counted as Playwright counts it, every test once', async () => {
    const repeated = await suites.run('outcomes', ['test', '--project=main', '--no-deps', '--retries=0', '--repeat-each=2', 'soft'], { project: 'repeated' });
    const { stats, tests } = readReport(repeated);
    const run = await getJson(`/api/test-runs/${runIdOf(repeated, 'live')}?limit=0`);
    const counted = stats.expected + stats.unexpected + stats.flaky + stats.skipped;
    assert.deepEqual([run.totalTests, run.repetitions], [tests.size, counted]);
    assert.equal(counted, 2 * tests.size);
    assert.ok((await getText(`/test-runs/${run.id}`)).includes(`${counted} with repetitions`), 'on the page of the run');
  });

  test('a step keeps its subtitle beside its title', async () => {
    const step = (await stepsOf(named('skips steps'))).find(({ title }) => title === 'runs');
    assert.equal(step.subtitle, 'with a card');
  });

  test('an emoji in a difference is whole', async () => {
    const { errorPlain } = await getJson(`/api/test-run-cases/${named('compares emoji').id}`);
    assert.ok(errorPlain.includes('a 😀 b') && errorPlain.includes('a 😁 b'), errorPlain);
  });

  test('skipped steps are skipped, with their reason', async () => {
    const steps = await stepsOf(named('skips steps'));
    const read = steps.filter(({ title }) => /^is |^runs$/.test(title)).map(({ title, skipped, skipReason, failed }) => ({ title, skipped, skipReason, failed }));
    assert.deepEqual(read, [
      { title: 'is declared as skipped', skipped: true, skipReason: undefined, failed: undefined },
      { title: 'is skipped when it runs', skipped: true, skipReason: 'needs a beta account', failed: undefined },
      { title: 'runs', skipped: undefined, skipReason: undefined, failed: undefined },
    ]);
    assert.match(await getText(`/test-run-cases/${named('skips steps').id}`), /skipped: needs a beta account/);
  });

  test('a hook that skips its test did not fail', async () => {
    const steps = await stepsOf(named('before each, skipping', 'is the first'));
    assert.deepEqual(steps.filter(({ failed, error }) => failed || error), []);
    assert.deepEqual(steps.filter(({ title }) => title === 'beforeEach hook').map(({ skipped, skipReason }) => [skipped, skipReason]), [[true, 'no customer today']]);
    const steps2 = await stepsOf(named('skips itself in a step'));
    assert.deepEqual(steps2.filter(({ failed, error }) => failed || error), []);
  });

  test('each soft failure has its place', async () => {
    const { error } = await getJson(`/api/test-run-cases/${named('fails softly, then hard').id}`);
    const places = [...new Set(error.match(/soft\.spec\.ts:\d+:\d+/g))].map((place) => place.split(':')[1]);
    assert.deepEqual(places, ['4', '5', '6', '7'], error);
  });
});
