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

/** A failing test, as the service names its failure. */
export interface FailingTest {
  title: string;
  browserProject: string;
  headline: string;
  url: string;
}

/** The failing tests of the run as far as they are listed; a sharded run is listed with all of its shards so far. */
export interface FailingTests {
  listed: readonly FailingTest[];
  total: number;
}

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
  if (env['GITHUB_STEP_SUMMARY']) appendFileSync(env['GITHUB_STEP_SUMMARY'], summary(output, totals, reasons, failing));
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

/** Each test in one column, as Playwright and the page of the run count them; first what no count of tests says. */
function summary(output: RunOutput, totals: Totals, reasons: readonly string[], failing: FailingTests): string {
  const name = markdown(output.projectName);
  const { totalTests, passedTests, failedTests, flakyTests, skippedTests, didNotRunTests, shardIndex, shardTotal } = totals;
  const part = shardIndex === undefined || shardTotal === undefined ? '' : `, shard ${shardIndex} of ${shardTotal}`;
  const interruptedTests = totalTests - passedTests - failedTests - skippedTests - didNotRunTests;
  const cells = [
    oneLine(output.status), totalTests, passedTests - flakyTests, failedTests, flakyTests, skippedTests, didNotRunTests, interruptedTests,
  ];
  return [
    `### Callboard: [${name}, run ${output.runId}](${output.runUrl})${part}`,
    '',
    ...(reasons.length > 0 ? [...reasons.map((reason) => `- **${markdown(reason)}**`), ''] : []),
    '| Status | Tests | Passed | Failed | Flaky | Skipped | Did not run | Interrupted |',
    '|---|---|---|---|---|---|---|---|',
    `| ${cells.join(' | ')} |`,
    '',
    ...failingLines(output, failing),
    '',
  ].join('\n');
}

function failingLines({ runUrl }: RunOutput, { listed, total }: FailingTests): string[] {
  if (listed.length === 0) return [];
  const lines = listed.map(({ title, browserProject, headline, url }) => {
    const where = browserProject === '' ? '' : ` (${markdown(browserProject)})`;
    return `- [${markdown(title)}](${url})${where}${headline === '' ? '' : `: ${markdown(headline)}`}`;
  });
  const more = total - listed.length;
  return [...lines, ...(more > 0 ? [`- [and ${more} more](${runUrl}?outcome=failing)`] : []), ''];
}

function markdown(text: string): string {
  return oneLine(text).replace(/[\\[\]()<>*_`|]/g, '\\$&');
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
}
