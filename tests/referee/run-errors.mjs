/** Runs that fail outside of their tests: failed for Playwright, failed and explained wherever the service shows them. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { assertAsReported, runIdOf } from './support/compare.mjs';
import { RELEASES, suitesFor } from './support/playwright.mjs';
import { readReport } from './support/report.mjs';
import { getJson, getText } from './support/service.mjs';

const BROKEN = {
  'global set-up': { message: 'db is down', location: /^breaks\.ts:2:/ },
  'global teardown': { message: 'db is down', location: /^breaks\.ts:2:/ },
  'a file does not load': { message: 'the fixtures file is missing', location: /^does-not-load\.spec\.ts:3:/ },
  'test.only is forbidden': { message: "item focused with '.only' is not allowed", location: /^only\.spec\.ts:3:/ },
  'worker teardown': { message: 'worker teardown broke', location: /^worker-teardown\.spec\.ts:6:/ },
  'no tests': { message: 'No tests found', location: /^$/ },
};

for (const release of [RELEASES[0], RELEASES.at(-1)]) {
  describe(release, () => {
    const suites = suitesFor(release);
    after(() => suites.remove());

    for (const [broken, { message, location }] of Object.entries(BROKEN)) {
      test(broken, async () => {
        const run = await suites.run('run-errors', ['test'], { env: { BROKEN: broken } });
        const report = readReport(run);
        assert.equal(run.exitCode, 1);
        for (const way of ['live', 'batch']) {
          const id = runIdOf(run, way);
          const { run: stored } = await assertAsReported(id, report, way);
          assert.equal(stored.status, 'failed');
          assert.equal(stored.runErrors.length, report.errors.length, run.output);
          assert.ok(stored.runErrors[0].message.includes(message), stored.runErrors[0].message);
          assert.match(stored.runErrors[0].location ?? '', location);
          assert.ok(stored.statusReason.includes(message), stored.statusReason);
        }
        await assertExplained(runIdOf(run, 'live'), message);
      });
    }
  });
}

/** On the page of the run, in lists, in exports, in the gate. */
async function assertExplained(id, message) {
  const escaped = message.replaceAll("'", '&#39;');
  const [page, junit, ctrf] = await Promise.all([
    getText(`/test-runs/${id}`), getText(`/api/test-runs/${id}/export?format=junit`), getText(`/api/test-runs/${id}/export?format=ctrf`),
  ]);
  assert.ok(page.includes(escaped) || page.includes(message), 'on the page');
  for (const [where, text] of Object.entries({ junit, ctrf })) {
    assert.ok([message, escaped, message.replaceAll("'", '&apos;')].some((each) => text.includes(each)), `in ${where}: ${text.slice(0, 2_000)}`);
  }
  const gate = await getJson(`/api/test-runs/${id}/gate`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ maxFailed: 0 }),
  });
  assert.equal(gate.passed, false);
}
