/**
 * What later steps of a pipeline can read about the run: the JSON file of `outputFile`,
 * and what the CI systems that take such files offer.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeFolders } from './folders';
import type { Env } from './options';

export interface RunOutput {
  runUrl: string;
  runId: number;
  projectId: number | null;
  projectName: string;
  status: string;
  ciBuildUrl: string | null;
}

export interface Totals {
  totalTests: number;
  passedTests: number;
  failedTests: number;
  flakyTests: number;
  skippedTests: number;
  didNotRunTests: number;
  /** Absent where the tests are those of the whole run. */
  shardIndex?: number | undefined;
  shardTotal?: number | undefined;
}

export function writeOutputFile(file: string, workingDirectory: string, output: RunOutput): void {
  const target = path.resolve(workingDirectory, file);
  makeFolders(path.dirname(target));
  writeFileSync(target, `${JSON.stringify(output, null, 2)}\n`);
}

/** Step outputs and a summary for GitHub Actions, `callboard.env` for GitLab CI. Returns a line for the log of the job. */
export function writeCiOutputs(env: Env, workingDirectory: string, output: RunOutput, totals: Totals): string | undefined {
  if (env['GITHUB_OUTPUT']) appendFileSync(env['GITHUB_OUTPUT'], lines(githubOutputs(output)));
  if (env['GITHUB_STEP_SUMMARY']) appendFileSync(env['GITHUB_STEP_SUMMARY'], summary(output, totals));
  if (env['GITLAB_CI']) writeFileSync(path.join(workingDirectory, 'callboard.env'), lines(dotenv(output)));
  return env['GITHUB_ACTIONS'] ? `::notice title=Callboard::${oneLine(output.projectName)}: ${output.runUrl}` : undefined;
}

function githubOutputs({ runUrl, runId, status, projectId }: RunOutput): [string, string | number][] {
  return [
    ['callboard_run_url', runUrl], ['callboard_run_id', runId], ['callboard_run_status', status],
    ['callboard_project_id', projectId ?? ''],
  ];
}

function dotenv({ runUrl, runId, status, projectId }: RunOutput): [string, string | number][] {
  return [
    ['SERVICE_RUN_URL', runUrl], ['SERVICE_RUN_ID', runId], ['SERVICE_RUN_STATUS', status],
    ['SERVICE_PROJECT_ID', projectId ?? ''],
  ];
}

function lines(pairs: readonly [string, string | number][]): string {
  return pairs.map(([name, value]) => `${name}=${oneLine(String(value))}\n`).join('');
}

/** Each test in one column, as Playwright and the page of the run count them. */
function summary(output: RunOutput, totals: Totals): string {
  const name = oneLine(output.projectName).replace(/[\\[\]()<>*_`|]/g, '\\$&');
  const { totalTests, passedTests, failedTests, flakyTests, skippedTests, didNotRunTests, shardIndex, shardTotal } = totals;
  const part = shardIndex === undefined || shardTotal === undefined ? '' : `, shard ${shardIndex} of ${shardTotal}`;
  const interruptedTests = totalTests - passedTests - failedTests - skippedTests - didNotRunTests;
  const cells = [
    oneLine(output.status), totalTests, passedTests - flakyTests, failedTests, flakyTests, skippedTests, didNotRunTests, interruptedTests,
  ];
  return [
    `### Callboard: [${name}, run ${output.runId}](${output.runUrl})${part}`,
    '',
    '| Status | Tests | Passed | Failed | Flaky | Skipped | Did not run | Interrupted |',
    '|---|---|---|---|---|---|---|---|',
    `| ${cells.join(' | ')} |`,
    '',
    '',
  ].join('\n');
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
}
