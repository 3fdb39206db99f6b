/** `summary`: prints a run as the Markdown of the job summary, for people who post it themselves. */
import { createClient, deadlineIn, isForbidden, RequestFailed, type JsonObject } from '../client';
import { advice } from '../failure';
import { readFailingTests } from '../failing-tests';
import { lastRunOf, type LastRun } from '../last-run';
import { createLog } from '../log';
import { isRecord, resolveSettings, type Credentials, type Env } from '../options';
import { reasonsOf } from '../run-errors';
import { runSummary, type RunOutput, type Totals } from '../summary';

export interface SummaryOptions {
  env: Env;
  /** Address of the service. */
  url: string | undefined;
  /** Id or address of the run; the last one sent from this folder when absent. */
  run: string | undefined;
  workingDirectory: string;
  /** Markdown, for standard output. */
  print(text: string): void;
  /** What went wrong, for people. */
  complain(line: string): void;
}

const READ_TIMEOUT_MS = 30_000;

/** The exit code: 1 when the run could not be read, 2 when it is not clear which one is meant. */
export async function summaryCommand({ env, url, run, workingDirectory, print, complain }: SummaryOptions): Promise<number> {
  const settings = resolveSettings(url === undefined ? {} : { serverUrl: url }, env);
  if (settings.problem) {
    complain(settings.problem);
    return 2;
  }
  const meant = run === undefined ? await lastRunOf(settings.spoolDir, workingDirectory) : namedRun(run, settings.origin);
  if (typeof meant === 'string' || meant === undefined) {
    complain(meant ?? 'no run was sent from this folder; name one by its id or address');
    return 2;
  }
  // An address that is only remembered, or pasted, gets no key by itself.
  const isNamed = settings.origin === meant.origin;
  const credentials: Credentials = isNamed ? settings.credentials : { kind: 'none' };
  const log = createLog(settings.verbose, () => process.stderr);
  const client = createClient(meant.origin, credentials, log);
  const deadline = deadlineIn(READ_TIMEOUT_MS);
  try {
    const answer = await client.read(`/api/test-runs/${meant.runId}?limit=0`, deadline);
    const output = outputOf(answer, meant);
    const totals = totalsOf(answer);
    const failing = await readFailingTests(client, output, deadline, log);
    print(runSummary(output, totals, reasonsIn(answer, totals), failing).trimEnd());
    return 0;
  } catch (error) {
    const isWithheld = !isNamed && settings.credentials.kind !== 'none' && isForbidden(error);
    complain(`run ${meant.runId} of ${meant.origin} could not be read: ${isWithheld
      ? `credentials go only to the service that is named, with --url ${meant.origin} or SERVICE_URL` : advice(error)}`);
    return 1;
  }
}

/** The run, or a sentence that says why it is not clear which one is meant. */
function namedRun(run: string, origin: string | undefined): LastRun | string {
  if (/^[1-9]\d{0,15}$/.test(run)) {
    return origin === undefined ? 'the address of the service is missing: set --url or SERVICE_URL' : { runId: Number(run), origin };
  }
  try {
    const { protocol, origin: own, pathname } = new URL(run);
    const [, id] = /^\/test-runs\/([1-9]\d{0,15})\/?$/.exec(pathname) ?? [];
    if (/^https?:$/.test(protocol) && id !== undefined) return { runId: Number(id), origin: own };
  } catch {
    // Neither an id nor an address.
  }
  return `the run must be an id or an address like https://tests.example.org/test-runs/41, got "${run}"`;
}

function outputOf(answer: JsonObject, { runId, origin }: LastRun): RunOutput {
  const { projectName, status, url, projectId, buildUrl } = answer;
  if (typeof projectName !== 'string' || typeof status !== 'string') {
    throw new RequestFailed('the answer names no run: is this the address of the service?', 200);
  }
  return {
    projectName, status, runId,
    runUrl: typeof url === 'string' && isAddress(url) ? url : `${origin}/test-runs/${runId}`,
    projectId: typeof projectId === 'number' ? projectId : null,
    ciBuildUrl: typeof buildUrl === 'string' ? buildUrl : null,
  };
}

function isAddress(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

function totalsOf(answer: JsonObject): Totals {
  const count = (name: keyof Totals): number => (typeof answer[name] === 'number' ? answer[name] : 0);
  return {
    totalTests: count('totalTests'), passedTests: count('passedTests'), failedTests: count('failedTests'),
    flakyTests: count('flakyTests'), skippedTests: count('skippedTests'), didNotRunTests: count('didNotRunTests'),
  };
}

/** The errors of the run in the words of the service; without any, what its status alone says. */
function reasonsIn({ runErrors, status }: JsonObject, { failedTests }: Totals): string[] {
  const headlines = (Array.isArray(runErrors) ? runErrors : []).filter(isRecord).map(({ headline }) => headline)
    .filter((headline): headline is string => typeof headline === 'string');
  if (headlines.length > 0) return headlines;
  return status === 'interrupted' || status === 'timedout' || status === 'failed' ? reasonsOf([], status, failedTests) : [];
}
