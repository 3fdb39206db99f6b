/** Runs that are interrupted, wherever they are, or stopped by a limit: what is known of them is what Playwright knows. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { assertAsReported, runIdOf } from './support/compare.mjs';
import { RELEASES, suitesFor } from './support/playwright.mjs';
import { readReport } from './support/report.mjs';
import { getAll } from './support/service.mjs';

const PLACES = ['global set-up', 'before all', 'worker fixture', 'fixture', 'test', 'retry', 'fixture teardown', 'after all', 'worker teardown', 'global teardown'];
/** What older releases report of tests that are cut off differs from the newest, which is the referee there. */
const IN_OLDER_RELEASES = new Set(['global set-up']);
const NEWEST = RELEASES[0];

for (const release of RELEASES) {
  describe(release, () => {
    const suites = suitesFor(release);
    after(() => suites.remove());
    const checked = async (run, status, what, reason = what) => {
      for (const way of ['live', 'batch']) {
        const { run: stored, executions } = await assertAsReported(runIdOf(run, way), readReport(run), `${what}, ${way}`);
        assert.equal(stored.status, status, `${what}, ${way}`);
        const reasons = executions.filter((each) => each.status === 'didnotrun').map((each) => each.didNotRunReason);
        assert.deepEqual([...new Set(reasons)], reasons.length > 0 ? [reason] : [], `${what}, ${way}`);
      }
    };

    for (const place of PLACES.filter((each) => release === NEWEST || IN_OLDER_RELEASES.has(each))) {
      test(`is interrupted at: ${place}`, async () => {
        const run = await suites.start('cut-off', ['test'], { env: { CUT_OFF: place } }).interruptAt(`WAITING AT ${place}`);
        await checked(run, 'interrupted', place, 'interrupted');
      });
    }

    test('stops at a number of failures', async () => {
      await checked(await suites.run('cut-off', ['test', '--max-failures=1']), 'failed', 'max-failures');
    });

    if (release !== NEWEST) return;
    test('reaches its global timeout', async () => {
      const run = await suites.run('cut-off', ['test', '--global-timeout=6000'], { env: { CUT_OFF: 'test', TRACE: 'on' } });
      await checked(run, 'timedout', 'global-timeout');
      for (const way of ['live', 'batch']) {
        const executions = await getAll(`/api/test-runs/${runIdOf(run, way)}/executions`);
        const cutOff = executions.find(({ title }) => title === 'is cut off');
        assert.deepEqual([cutOff.status, cutOff.counts.traces], ['didnotrun', 1], `the trace of what was cut off, ${way}: ${run.output}`);
      }
    });
  });
}
