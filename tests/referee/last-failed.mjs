/** `--last-failed` runs again what failed: a partial run of these tests, with their own results. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { assertAsReported, runIdOf } from './support/compare.mjs';
import { RELEASES, suitesFor } from './support/playwright.mjs';
import { readReport } from './support/report.mjs';

/** Playwright 1.44 was the first to know it. */
for (const release of RELEASES.filter((each) => each !== 'playwright-1.40')) {
  describe(release, () => {
    const suites = suitesFor(release);
    after(() => suites.remove());

    test('what failed is run again, as a part of the suite', async () => {
      const env = { REFEREE_RESULTS: path.join(suites.folder, 'results') };
      const first = await suites.run('last-failed', ['test'], { env });
      const second = await suites.run('last-failed', ['test', '--last-failed'], { env: { ...env, REPAIRED: 'yes' } });
      for (const way of ['live', 'batch']) {
        const { run: failed } = await assertAsReported(runIdOf(first, way), readReport(first), `first, ${way}`);
        const { run: repaired, executions } = await assertAsReported(runIdOf(second, way), readReport(second), `again, ${way}`);
        assert.deepEqual([failed.status, failed.isFullRun], ['failed', true], way);
        assert.deepEqual([repaired.status, repaired.isFullRun, repaired.partialReason], ['passed', false, 'selection'], way);
        assert.deepEqual(executions.map(({ title, isFixed }) => [title, isFixed]), [['fails until it is repaired', true]], way);
      }
    });
  });
}
