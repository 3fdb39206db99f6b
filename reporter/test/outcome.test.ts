import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outcomeOver, type AttemptStatus, type TestOutcome } from '../src/attempts';

const STATUSES: readonly AttemptStatus[] = ['passed', 'failed', 'timedOut', 'interrupted', 'skipped', 'didnotrun'];

function sequences(longest: number): AttemptStatus[][] {
  if (longest === 0) return [[]];
  const shorter = sequences(longest - 1);
  return [...shorter, ...shorter.filter((each) => each.length === longest - 1).flatMap((each) => STATUSES.map((status) => [...each, status]))];
}

/** `TestCase.outcome()` as Playwright writes it: results are counted by kind; a test that skips itself is then expected to. */
function playwrightOutcome(statuses: readonly AttemptStatus[], declared: AttemptStatus): string {
  const ran = statuses.filter((status) => status !== 'interrupted' && status !== 'didnotrun');
  const expectedStatus = ran.at(-1) === 'skipped' ? 'skipped' : declared;
  let [skipped, expected, unexpected] = [0, 0, 0];
  for (const status of ran) {
    if (status === 'skipped' && expectedStatus === 'skipped') skipped++;
    else if (status === 'skipped') continue;
    else if (status === expectedStatus) expected++;
    else unexpected++;
  }
  if (expected === 0 && unexpected === 0) return 'skipped';
  if (unexpected === 0) return 'expected';
  return expected === 0 && skipped === 0 ? 'unexpected' : 'flaky';
}

const IN_PLAYWRIGHT: Record<TestOutcome, string> = {
  failed: 'unexpected', timedOut: 'unexpected', flaky: 'flaky', passed: 'expected',
  skipped: 'skipped', interrupted: 'skipped', didNotRun: 'skipped',
};

test('every sequence of attempts is judged as Playwright judges it', () => {
  const all = sequences(4);
  assert.equal(all.length, 1 + 6 + 36 + 216 + 1_296);
  for (const statuses of all) {
    for (const expected of ['passed', 'failed'] as const) {
      const outcome = outcomeOver(statuses, expected === 'failed');
      assert.equal(IN_PLAYWRIGHT[outcome], playwrightOutcome(statuses, expected), `${statuses} with ${expected} expected`);
    }
  }
});

test('a failure does not vanish behind an attempt that was interrupted or did not run', () => {
  const over = (...statuses: AttemptStatus[]): TestOutcome => outcomeOver(statuses, false);
  assert.equal(over('failed', 'interrupted'), 'failed');
  assert.equal(over('failed', 'timedOut', 'didnotrun'), 'timedOut');
  assert.equal(over('passed', 'failed'), 'flaky');
  assert.equal(over('failed', 'skipped'), 'flaky');
  assert.equal(over('passed', 'skipped'), 'flaky');
  assert.equal(over('failed', 'skipped', 'failed'), 'failed');
  assert.equal(over('passed', 'interrupted'), 'passed');
  assert.equal(over('didnotrun', 'interrupted'), 'interrupted');
  assert.equal(over(), 'didNotRun');
});
