/**
 * Uploads files by plan, PUT and commit. A lost connection is tried again, an expired ticket is planned again, and a file
 * that the project has is not sent. Whatever happens to one file, the others go on.
 */
import { isTransient, pauseAfter, RequestFailed, type Client, type Deadline } from '../client';
import { Unreadable } from '../files';
import type { Log } from '../log';
import { commitUploads, PlanUnsupported, planUploads, type HashedFile, type Ticket, type UploadTarget } from './calls';
import { hashOf, type StagedFile } from './staged-file';

export interface StagingParts {
  client: Client;
  log: Log;
  target: UploadTarget;
  /** Files sent concurrently. */
  parallel: number;
  /** Repeats a call to the service while it fails for a reason that may pass. */
  persist<T>(work: () => Promise<T>): Promise<T>;
  pause(milliseconds: number): Promise<void>;
  deadline(): Deadline;
  /** There is no time left. */
  isOver(): boolean;
  /** Bytes of a file sent so far; begins again at 0 with every try. */
  onSent(file: StagedFile, sentBytes: number): void;
}

export interface StagedOutcome {
  file: StagedFile;
  /** Why the file did not arrive; undefined when it did. */
  failure: unknown;
}

/** The bytes did not arrive or were not checked in time: worth another try on another day. */
export class TransferFailed extends Error {
  constructor(
    message: string,
    /** The ticket is of no use any more, a new one may be. */
    readonly needsPlan = false,
    /** The object store does not answer here, while the service may. */
    readonly isUnreachable = false,
  ) {
    super(message);
  }
}

/** The service verifies this much in one request, and a ticket does not expire while so much is sent. */
const BATCH_MAX_BYTES = 256 * 1024 * 1024;
const BATCH_MAX_FILES = 100;
/** An expired ticket or bytes that were damaged on the way are worth a new plan, but not forever. */
const PLANS_MAX = 3;
const PUT_TRIES = 4;
/** The result may be on its way through another process of the service. */
const UNKNOWN_CASE_PAUSES_MS = [1_000, 3_000];
const PENDING_PAUSE_MAX_MS = 10_000;
/** Answers to a PUT with a ticket, or a signature, that has expired. */
const EXPIRED = new Set([400, 401, 403, 404, 410]);

/** What became of each file, in order. Throws `PlanUnsupported` before anything was sent where the service has no plans. */
export async function stageFiles(parts: StagingParts, files: readonly StagedFile[]): Promise<StagedOutcome[]> {
  const failures = new Map<StagedFile, unknown>();
  const arrived = new Set<StagedFile>();
  let hasAnswered = false;
  for (const batch of batchesOf(files)) {
    const staging: Staging = { ...parts, failures, arrived };
    try {
      await stageBatch(staging, await hashed(batch, failures));
    } catch (error) {
      if (error instanceof PlanUnsupported && !hasAnswered) throw error;
      // What one request met, the next one would wait for as well.
      for (const file of files) if (!arrived.has(file) && !failures.has(file)) failures.set(file, error);
      break;
    }
    hasAnswered = true;
  }
  return files.map((file) => ({ file, failure: failures.get(file) }));
}

interface Staging extends StagingParts {
  failures: Map<StagedFile, unknown>;
  arrived: Set<StagedFile>;
}

interface SentFile extends HashedFile {
  ticket: string | undefined;
}

async function hashed(files: readonly StagedFile[], failures: Map<StagedFile, unknown>): Promise<HashedFile[]> {
  const known: HashedFile[] = [];
  for (const file of files) {
    try {
      known.push({ file, sha256: await hashOf(file) });
    } catch (error) {
      failures.set(file, error);
    }
  }
  return known;
}

async function stageBatch(staging: Staging, batch: readonly HashedFile[]): Promise<void> {
  let left = batch;
  for (let plans = 1; left.length > 0; plans++) {
    const { sent, again } = await sendMissing(staging, left);
    again.push(...await commit(staging, sent));
    if (plans >= PLANS_MAX || staging.isOver()) {
      for (const { file } of again) staging.failures.set(file, staging.failures.get(file) ?? new TransferFailed('the upload was not accepted'));
      return;
    }
    for (const { file } of again) staging.failures.delete(file);
    left = again;
  }
}

/** Sends what the service does not have. `again` has to be planned once more. */
async function sendMissing(staging: Staging, files: readonly HashedFile[]): Promise<{ sent: SentFile[]; again: HashedFile[] }> {
  const { client, target, failures } = staging;
  const planned = await staging.persist(() => planUploads(client, target, files, staging.deadline()));
  const sent: SentFile[] = [];
  const again: HashedFile[] = [];
  const uploads: { hashed: HashedFile; upload: Ticket }[] = [];
  const underway = new Set<string>();
  const twins: SentFile[] = [];
  for (const [index, hashed] of files.entries()) {
    const plan = planned[index]!;
    if (plan.status === 'have') sent.push({ ...hashed, ticket: undefined });
    else if (plan.status !== 'missing') failures.set(hashed.file, new RequestFailed(plan.message, plan.status === 'too_large' ? 413 : 422));
    // The same bytes twice are sent once: the second link finds what the first one brought.
    else if (underway.has(`${hashed.file.kind} ${hashed.sha256}`)) twins.push({ ...hashed, ticket: undefined });
    else {
      underway.add(`${hashed.file.kind} ${hashed.sha256}`);
      uploads.push({ hashed, upload: plan.upload });
    }
  }
  const worker = async (): Promise<void> => {
    for (let next = uploads.shift(); next; next = uploads.shift()) {
      const { hashed, upload } = next;
      try {
        await put(staging, hashed.file, upload);
        sent.push({ ...hashed, ticket: upload.ticket });
      } catch (error) {
        failures.set(hashed.file, error);
        if (error instanceof TransferFailed && error.needsPlan) again.push(hashed);
      }
    }
  };
  await Promise.all(Array.from({ length: staging.parallel }, worker));
  return { sent: [...sent, ...twins], again };
}

async function put(staging: Staging, file: StagedFile, upload: Ticket): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await staging.client.put(upload, { headers: {}, length: file.sizeBytes, open: () => counted(staging, file) }, staging.deadline());
      return;
    } catch (error) {
      if (error instanceof Unreadable || !(error instanceof RequestFailed)) throw error;
      // Used, which only a PUT of ours can have done: its answer was lost, and the commit tells what arrived.
      if (error.status === 409) return;
      // Of the gateway or the store: trying again does not make the file smaller.
      if (error.status === 413) throw new RequestFailed(`it is too large for one request (${error.message})`, 413);
      if (error.status === 422 || EXPIRED.has(error.status ?? 0)) throw new TransferFailed(error.message, true);
      if (!isTransient(error) || tries >= PUT_TRIES || staging.isOver()) {
        throw new TransferFailed(error.message, false, upload.isDirect && error.status === undefined && !staging.isOver());
      }
      staging.log.detail(`upload of ${file.name}: ${error.message}; trying again`);
      await staging.pause(error.pauseMs ?? pauseAfter(tries));
    }
  }
}

async function* counted({ onSent }: Staging, file: StagedFile): AsyncGenerator<Uint8Array> {
  let sentBytes = 0;
  onSent(file, 0);
  for await (const chunk of file.open()) {
    yield chunk;
    sentBytes += chunk.length;
    onSent(file, sentBytes);
  }
}

/** Attaches what is there; returns what has to be planned again. */
async function commit(staging: Staging, sent: readonly SentFile[]): Promise<HashedFile[]> {
  const { client, target, failures, arrived } = staging;
  const again: HashedFile[] = [];
  let unknown = 0;
  let pauses = 0;
  for (let left = sent; left.length > 0;) {
    const answers = await staging.persist(() => commitUploads(client, target, left, staging.deadline()));
    const pending: SentFile[] = [];
    const unknownCases: SentFile[] = [];
    for (const [index, item] of left.entries()) {
      const { status, message } = answers[index]!;
      if (ARRIVED.has(status)) arrived.add(item.file);
      else if (status === 'pending') pending.push(item);
      else if (status === 'case_not_found') unknownCases.push(item);
      else if (NOT_THERE.has(status)) {
        failures.set(item.file, new TransferFailed(message ?? `the upload was not accepted (${status})`));
        again.push(item);
      } else failures.set(item.file, new RequestFailed(message ?? `the service does not take the file (${status})`, 422));
    }
    const waitMs = UNKNOWN_CASE_PAUSES_MS[unknown];
    if (unknownCases.length > 0) unknown++;
    left = waitMs === undefined ? pending : [...pending, ...unknownCases];
    if (waitMs === undefined) {
      for (const { file } of unknownCases) failures.set(file, new RequestFailed('the service does not know the result of the file', 404, 'case_not_found'));
    }
    if (left.length === 0) break;
    if (staging.isOver()) {
      for (const { file } of left) failures.set(file, new TransferFailed('the service was still checking the file'));
      break;
    }
    const pendingPauseMs = Math.min(PENDING_PAUSE_MAX_MS, 1_000 * ++pauses);
    await staging.pause(unknownCases.length > 0 && waitMs !== undefined ? waitMs : pendingPauseMs);
  }
  return again;
}

const ARRIVED = new Set(['linked', 'stored', 'duplicate']);
const NOT_THERE = new Set(['not_uploaded', 'hash_mismatch', 'size_mismatch']);

function batchesOf(files: readonly StagedFile[]): StagedFile[][] {
  const batches: StagedFile[][] = [];
  let bytes = 0;
  for (const file of files) {
    const current = batches.at(-1);
    if (current && current.length < BATCH_MAX_FILES && bytes + file.sizeBytes <= BATCH_MAX_BYTES) {
      current.push(file);
      bytes += file.sizeBytes;
    } else {
      batches.push([file]);
      bytes = file.sizeBytes;
    }
  }
  return batches;
}
