/**
 * The failing tests of a run in the words of the service, which knows better than the first line of an error what a
 * failure is called.
 */
import type { Deadline, JsonObject, ReadingClient } from './client';
import { advice } from './failure';
import type { Log } from './log';
import { isRecord } from './options';
import type { FailingTest, FailingTests, RunOutput } from './summary';

const LISTED_MAX = 20;

export const NONE_LISTED: FailingTests = { listed: [], total: 0 };

/** None where the service does not list them to this credential: the summary then stands without them. */
export async function readFailingTests(
  client: ReadingClient, { runId, runUrl }: RunOutput, deadline: Deadline, log: Log,
): Promise<FailingTests> {
  try {
    const page = await client.read(`/api/test-runs/${runId}/executions?outcome=failing&limit=${LISTED_MAX}`, deadline);
    const items = Array.isArray(page['items']) ? page['items'].filter(isRecord) : [];
    const total = typeof page['total'] === 'number' ? page['total'] : items.length;
    return { listed: items.map((item) => failingTest(item, runUrl)), total };
  } catch (error) {
    log.detail(`the failing tests were not listed: ${advice(error)}`);
    return NONE_LISTED;
  }
}

function failingTest(item: JsonObject, runUrl: string): FailingTest {
  const text = (name: string): string => (typeof item[name] === 'string' ? item[name] : '');
  const suites = Array.isArray(item['suitePath']) ? item['suitePath'].filter((title) => typeof title === 'string') : [];
  return {
    title: [...suites, text('title')].join(' › '),
    browserProject: text('browserProject'),
    headline: text('error'),
    url: new URL(`/test-run-cases/${String(item['id'])}`, runUrl).href,
  };
}
