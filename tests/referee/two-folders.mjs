/** A test is the same test wherever its run was started, and wherever its report was recorded and merged. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { RELEASES, suitesFor } from './support/playwright.mjs';
import { getAll, getJson } from './support/service.mjs';

const REPOSITORY = 'two-folders';
const PACKAGE = 'packages/web';
const TESTS = `${PACKAGE}/tests/shop.spec.ts`;

for (const release of RELEASES) {
  describe(release, () => {
    const suites = suitesFor(release);
    after(() => suites.remove());
    const folder = (...names) => path.join(suites.folder, ...names);

    test('has one history', async () => {
      const env = { REFEREE_BLOBS: folder('blobs') };
      const sent = [];
      const run = async (place, args, options = {}) => sent.push(await suites.run(place, args, { project: REPOSITORY, ...options }));
      execFileSync('git', ['init', '-q'], { cwd: folder(REPOSITORY) });
      // As in a container: the repository, or one package of it, at another place that is gone when reports are merged.
      cpSync(folder(REPOSITORY), folder('app'), { recursive: true });
      cpSync(folder(REPOSITORY, PACKAGE), folder('mounted/w1/w1'), { recursive: true });

      await run(REPOSITORY, ['test', '-c', PACKAGE]);
      await run(`${REPOSITORY}/${PACKAGE}`, ['test']);
      await run('app', ['test', '-c', PACKAGE]);
      await suites.run('mounted/w1/w1', ['test'], { env: { ...env, SERVICE_REPORTER_ENABLED: 'false' } });
      rmSync(folder('mounted/w1/w1'), { recursive: true });
      await run(REPOSITORY, ['merge-reports', '-c', `${PACKAGE}/playwright.config.ts`, env.REFEREE_BLOBS]);
      const alone = folder('output/alone.json');
      for (const place of [REPOSITORY, `${REPOSITORY}/${PACKAGE}`]) {
        const merged = await suites.run(place, ['merge-reports', '--reporter=callboard-reporter', env.REFEREE_BLOBS], {
          env: { SERVICE_PROJECT_NAME: `${REPOSITORY}, ${release}, live`, SERVICE_OUTPUT_FILE: alone },
        });
        assert.equal(JSON.parse(readFileSync(alone, 'utf8')).status, 'failed', merged.output);
      }

      for (const [way, times] of [['live', sent.length + 2], ['batch', sent.length]]) {
        const { projectId } = JSON.parse(readFileSync(path.join(sent[0].outputFolder, `${way}.json`), 'utf8'));
        const cases = await getAll(`/api/projects/${projectId}/test-cases`);
        assert.deepEqual(
          cases.map(({ filePath, suitePath, title, totalRuns }) => [filePath, ...suitePath, title, totalRuns]).sort(),
          [[TESTS, 'shop', 'opens', times], [TESTS, 'shop', 'sells', times]], way);
        const runs = await getAll(`/api/projects/${projectId}/test-runs`);
        for (const { id } of runs) await assertOneRoot(id);
      }
    });
  });
}

/** Steps, errors and sources of a run are named from the same root as its tests. */
async function assertOneRoot(runId) {
  const failed = (await getAll(`/api/test-runs/${runId}/executions`)).find(({ status }) => status === 'failed');
  const { error, evidence } = await getJson(`/api/test-run-cases/${failed.id}?include=steps`);
  const step = evidence.steps.find(({ title }) => title === 'pays');
  assert.match(step.location, new RegExp(`^${PACKAGE}/pages\\.ts:4:`));
  assert.match(error, new RegExp(`at ${PACKAGE}/pages\\.ts:5:`));
}
