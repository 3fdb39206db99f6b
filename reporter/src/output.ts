/**
 * What later steps of a pipeline can read about the run: the JSON file of `outputFile`,
 * and what the CI systems that take such files offer.
 */
import { appendFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeFolders } from './folders';
import type { Env } from './options';
import { runSummary, type FailingTests, type RunOutput, type Totals } from './summary';

export function writeOutputFile(file: string, workingDirectory: string, output: RunOutput): void {
  const target = path.resolve(workingDirectory, file);
  makeFolders(path.dirname(target));
  writeFileSync(target, `${JSON.stringify(output, null, 2)}\n`);
}

/** Whether the CI system shows a summary of the job. */
export function showsSummary(env: Env): boolean {
  return Boolean(env['GITHUB_STEP_SUMMARY']);
}

/**
 * Step outputs and a summary for GitHub Actions, `callboard.env` for GitLab CI. `reasons` say why the run is not green beyond
 * its failed tests. Returns a line for the log of the job.
 */
export function writeCiOutputs(
  env: Env, workingDirectory: string, output: RunOutput, totals: Totals, reasons: readonly string[], failing: FailingTests,
): string | undefined {
  if (env['GITHUB_OUTPUT']) appendFileSync(env['GITHUB_OUTPUT'], lines(githubOutputs(output)));
  if (env['GITHUB_STEP_SUMMARY']) appendFileSync(env['GITHUB_STEP_SUMMARY'], runSummary(output, totals, reasons, failing));
  if (env['GITLAB_CI']) writeFileSync(path.join(workingDirectory, 'callboard.env'), lines(dotenv(output)));
  if (!env['GITHUB_ACTIONS']) return undefined;
  const [kind, why] = reasons[0] === undefined ? ['notice', ''] : ['error', `${oneLine(reasons[0]).replaceAll('%', '%25')} `];
  return `::${kind} title=Callboard::${oneLine(output.projectName)}: ${why}${output.runUrl}`;
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

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
}
