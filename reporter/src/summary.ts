/**
 * A run as Markdown: for the summary of a CI job, and for people who post it themselves.
 */
import { codeSpan, link } from './markdown';

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

/** `reasons` say why the run is not green beyond its failed tests; they come first, because no count of tests says it. */
export function runSummary(output: RunOutput, totals: Totals, reasons: readonly string[], failing: FailingTests): string {
  const { totalTests, passedTests, failedTests, flakyTests, skippedTests, didNotRunTests, shardIndex, shardTotal } = totals;
  const part = shardIndex === undefined || shardTotal === undefined ? '' : `, shard ${shardIndex} of ${shardTotal}`;
  const interruptedTests = totalTests - passedTests - failedTests - skippedTests - didNotRunTests;
  // Each test in one column, as Playwright and the page of the run count them.
  const cells = [
    statusWord(output.status), totalTests, passedTests - flakyTests, failedTests, flakyTests, skippedTests, didNotRunTests, interruptedTests,
  ];
  return [
    `### Callboard: ${link(`${codeSpan(output.projectName)}, run ${output.runId}`, output.runUrl)}${part}`,
    '',
    ...(reasons.length > 0 ? [...reasons.map((reason) => `- **${codeSpan(reason)}**`), ''] : []),
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
    const where = browserProject === '' ? '' : ` (${codeSpan(browserProject)})`;
    return `- ${link(codeSpan(title), url)}${where}${headline === '' ? '' : `: ${codeSpan(headline)}`}`;
  });
  const more = total - listed.length;
  return [...lines, ...(more > 0 ? [`- ${link(`and ${more} more`, `${runUrl}?outcome=failing`)}`] : []), ''];
}

/** One of the words the service has for it. */
function statusWord(status: string): string {
  return status.replace(/[^A-Za-z]/g, '') || 'unknown';
}
