/**
 * A run on its way to the service: what is sent of it, and what became of it.
 */
import type { ServiceCapabilities } from './capabilities';
import { RequestFailed, type Client, type Deadline, type JsonObject } from './client';
import type { AttachmentFile } from './files';
import type { Log } from './log';
import type { RunFields } from './run';
import type { AttemptIdentity, TestCaseEntry } from './test-case';
import { uploadBody, type IndexedFile } from './upload';

export interface OutgoingAttempt {
  /** The result, whole or as far as the service does not know it yet. */
  entry: Partial<TestCaseEntry>;
  identity: AttemptIdentity;
  files: AttachmentFile[];
}

export interface DeliveredRun {
  runId: number;
  projectId: number | undefined;
  runUrl: string | undefined;
  status: string | undefined;
  filesSent: number;
  /** Not accepted, or gone. */
  filesLost: number;
  /** The first of them, and why. */
  firstFileLost?: string;
  /** Not reached in the time there was: worth another try. */
  filesLeft: OutgoingFile[];
  /** Those the service fails on while it takes others: worth a try some other day. */
  resultsLeft: OutgoingResult[];
}

export type OutgoingResult = Pick<OutgoingAttempt, 'entry' | 'identity'>;

export interface Delivery {
  client: Client;
  deadline: Deadline;
  log: Log;
  run: RunFields;
  /** Consumed once, so the attempts of a large run never exist all at once. */
  attempts: Iterable<OutgoingAttempt>;
  /** Requests made at most for each step; six when absent. */
  tries?: number;
  /** What the service offers; completed by what its answers tell. Unknown when absent. */
  capabilities?: ServiceCapabilities;
  /** Somebody waits for the end: long work prints a line now and then. */
  isWaitedFor?: boolean;
}

export interface OutgoingFile {
  identity: AttemptIdentity;
  file: AttachmentFile;
}

/** Enough to find the one result or file the service fails on; after more it is the service that is broken. */
export const FAILURES_IN_A_ROW = 16;

/** The service fails on what it was sent, which may be at fault. */
export function isBroken(error: unknown): boolean {
  return error instanceof RequestFailed && error.status === 500;
}

/** Sends results and files in one multipart request. */
export async function upload(
  { client, deadline, tries }: Delivery, run: RunFields, cases: readonly string[], files: readonly IndexedFile[],
): Promise<DeliveredRun> {
  const body = await uploadBody(run, cases, files);
  return deliveredRun(await client.send('/api/test-runs/upload', body, deadline, tries === undefined ? {} : { tries }));
}

export function deliveredRun(answer: JsonObject): DeliveredRun {
  const runId = answer['runId'] ?? answer['testRunId'];
  if (typeof runId !== 'number') throw new RequestFailed('the answer names no run: is this the address of the service?', 200);
  return {
    runId,
    projectId: typeof answer['projectId'] === 'number' ? answer['projectId'] : undefined,
    runUrl: typeof answer['runUrl'] === 'string' ? answer['runUrl'] : undefined,
    status: typeof answer['status'] === 'string' ? answer['status'] : undefined,
    filesSent: 0,
    filesLost: 0,
    filesLeft: [],
    resultsLeft: [],
  };
}
