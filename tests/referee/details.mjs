/** What the author of a test wrote about a skip, and where a failure was, is readable wherever the test is. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runIdOf } from './support/compare.mjs';
import { RELEASES, suitesFor } from './support/playwright.mjs';
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
      const { id, status } = named(...path);
      assert.equal(status, 'skipped');
      const [page, rest] = await Promise.all([getText(`/test-run-cases/${id}`), getText(`/api/test-run-cases/${id}`)]);
      assert.ok(page.includes(reason), 'on its page');
      assert.ok(rest.includes(reason), 'over REST');
    });
  }

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
