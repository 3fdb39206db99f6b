/** Runs the suites as users of the published reporter do that `PUBLISHED_REPORTER` names. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { countingDir, runPlaywright } from './playwright-run.mjs';
import { getAll, getJson } from './service.mjs';

export const reporter = process.env.PUBLISHED_REPORTER;
export const scratch = mkdtempSync(path.join(tmpdir(), 'callboard-e2e-'));
after(() => rm(scratch, { recursive: true, force: true }));

/** What its users set. */
export const settings = (url, projectName, more = {}) => ({
  PUBLISHED_REPORTER: reporter, PIWI_DASHBOARD_URL: url, PIWI_PROJECT_NAME: projectName, PIWI_STREAMING_BATCH_DELAY: '50', ...more,
});
export const named = (what) => `${what} ${randomUUID().slice(0, 8)}`;
export const countingArguments = (more = []) => ['--retries=1', '--workers=1', ...more, `--output=${path.join(scratch, randomUUID())}`];
export const count = (env, more = []) => runPlaywright(countingArguments(more), env, countingDir);

const TOTALS = ['totalTests', 'passedTests', 'failedTests', 'timedOutTests', 'flakyTests', 'skippedTests', 'didNotRunTests'];
export const totalsOf = (shown) => Object.fromEntries(TOTALS.map((key) => [key, shown[key]]));
/** Those of `files`, in one browser project. */
export const FILES_TOTALS = { totalTests: 5, passedTests: 3, failedTests: 1, timedOutTests: 0, flakyTests: 1, skippedTests: 1, didNotRunTests: 0 };

/** The run a reporter says it made. */
export function runOf({ output }) {
  const said = /View run: .*\/test-runs\/(\d+)/.exec(output);
  assert.ok(said, output);
  return said[1];
}

/** The runs of a project, oldest first. */
export async function runsOf(projectName) {
  const { id } = (await getAll('/api/projects')).find(({ name }) => name === projectName);
  const runs = await getAll(`/api/projects/${id}/test-runs`);
  return await Promise.all(runs.map(({ id: run }) => run).sort((a, b) => a - b).map((run) => getJson(`/api/test-runs/${run}`)));
}
