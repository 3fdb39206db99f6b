/**
 * Gets the files of a run to the service once its results are there: large ones by plan, PUT and commit where the service
 * offers that, all others in multipart requests that name the attempt of each file.
 */
import { fitsRequest, GATEWAY_REQUEST_BYTES, REQUEST_MAX_BYTES, type ServiceCapabilities } from './capabilities';
import { isForbidden, isTransient, RequestFailed } from './client';
import { reasonOf } from './failure';
import { Unreadable } from './files';
import { FAILURES_IN_A_ROW, isBroken, upload, type DeliveredRun, type Delivery, type OutgoingFile } from './outgoing';
import { reportProgress } from './progress';
import { PlanUnsupported } from './uploads/calls';
import { TransferFailed } from './uploads/stage-files';
import { stageForRun } from './uploads/stage-for-run';
import { stagedAttachment, STAGED_MIN_BYTES, type StagedFile } from './uploads/staged-file';

export const UPLOAD_MAX_FILES = 200;
/** Room for the fields and part headers of one request. */
const FIELDS_MAX_BYTES = 128 * 1024;
/** A smaller batch may be accepted after these answers. */
const DIVISIBLE = new Set([400, 413, 422]);

export type DeliveredFiles = Pick<DeliveredRun, 'filesSent' | 'filesLost' | 'firstFileLost' | 'filesLeft'>;

type FileDelivery = Delivery & { capabilities: ServiceCapabilities };

/** Counts of what was done, while it is done. */
interface Tally {
  filesSent: number;
  firstFileLost: string | undefined;
  filesLeft: OutgoingFile[];
  bytesLeft: number;
  /** Bytes sent of files that are under way. */
  underway: Map<StagedFile, number>;
}

export async function deliverFiles(delivery: FileDelivery, runId: number, files: readonly OutgoingFile[]): Promise<DeliveredFiles> {
  const tally: Tally = { filesSent: 0, firstFileLost: undefined, filesLeft: [], bytesLeft: sizeOf(files), underway: new Map() };
  const stopProgress = delivery.isWaitedFor ? reportProgress(delivery.log, () => ({
    filesSent: tally.filesSent, files: files.length,
    bytesLeft: [...tally.underway.values()].reduce((left, sentBytes) => left - sentBytes, tally.bytesLeft),
  })) : undefined;
  try {
    const others = await sendStaged(delivery, runId, files, tally);
    await sendTogether(delivery, others, tally);
  } finally {
    stopProgress?.();
  }
  const { filesSent, firstFileLost, filesLeft } = tally;
  return { filesSent, filesLost: files.length - filesSent - filesLeft.length, ...(firstFileLost === undefined ? {} : { firstFileLost }), filesLeft };
}

/** Sends the large files if the service takes them one by one; returns those that are to be sent otherwise. */
async function sendStaged(
  delivery: FileDelivery, runId: number, files: readonly OutgoingFile[], tally: Tally,
): Promise<readonly OutgoingFile[]> {
  const { capabilities, run: { projectName } } = delivery;
  const large = capabilities.plan === false ? [] : files.filter(({ file }) => file.content.size >= STAGED_MIN_BYTES);
  if (large.length === 0) return files;
  const staged = large.map(({ identity, file }) => stagedAttachment(identity, file));
  let isRefused = false;
  const unreachable = new Set<OutgoingFile>();
  try {
    const outcomes = await stageForRun(delivery, { runId, projectName }, staged, (file, sentBytes) => tally.underway.set(file, sentBytes));
    capabilities.plan = true;
    for (const [index, { file, failure }] of outcomes.entries()) {
      const outgoing = large[index]!;
      tally.underway.delete(file);
      if (failure instanceof TransferFailed && failure.isUnreachable && fitsRequest(file.sizeBytes, capabilities)) {
        unreachable.add(outgoing);
        continue;
      }
      tally.bytesLeft -= file.sizeBytes;
      if (failure === undefined) tally.filesSent++;
      else if (mayBeRead(failure) || isTransient(failure) || isForbidden(failure)) tally.filesLeft.push(outgoing);
      else recordLost(tally, [outgoing], failure);
      isRefused ||= isForbidden(failure) || isTransient(failure);
    }
  } catch (error) {
    if (!(error instanceof PlanUnsupported)) throw error;
    capabilities.plan = false;
    return files;
  }
  const others = files.filter((file) => !large.includes(file) || unreachable.has(file));
  if (!isRefused) return others;
  // What these met, the others would meet as well.
  tally.filesLeft.push(...others);
  return [];
}

async function sendTogether(delivery: FileDelivery, files: readonly OutgoingFile[], tally: Tally): Promise<void> {
  let failures = 0;
  /** Fewest files of a batch the service failed on since it took one, and of one it then took in parts. */
  let failedOn = Infinity;
  let tooMany = Infinity;
  let queue = batchesOf(files, requestBytes(delivery.capabilities));
  for (let batch = queue.shift(); batch; batch = queue.shift()) {
    try {
      await uploadFiles(failures > 0 || batch.length >= tooMany ? { ...delivery, tries: 1 } : delivery, batch);
      tally.filesSent += batch.length;
      tally.bytesLeft -= sizeOf(batch);
      failures = 0;
      tooMany = Math.min(tooMany, failedOn);
      failedOn = Infinity;
    } catch (error) {
      delivery.log.detail(`${batch.length} file(s) were not accepted: ${reasonOf(error)}`);
      const mayBeAtFault = isBroken(error) && ++failures < FAILURES_IN_A_ROW;
      if ((isTransient(error) && !mayBeAtFault) || isForbidden(error)) {
        tally.filesLeft.push(...batch, ...queue.flat());
        break;
      }
      if (batch.length > 1 && isTooLarge(error)) {
        // The batches behind it would be as large.
        queue = [...halvesOf(batch), ...batchesOf(queue.flat(), Math.floor(sizeOf(batch) / 2))];
      } else if (batch.length > 1 && mayBeDivided(error)) {
        queue.unshift(...halvesOf(batch));
        if (mayBeAtFault) failedOn = Math.min(failedOn, batch.length);
      } else {
        // The one at fault was in all of those batches.
        failedOn = Infinity;
        tally.bytesLeft -= sizeOf(batch);
        if (mayBeAtFault || mayBeRead(error)) tally.filesLeft.push(...batch);
        else recordLost(tally, batch, error);
      }
    }
  }
}

function recordLost(tally: Tally, files: readonly OutgoingFile[], error: unknown): void {
  tally.firstFileLost ??= `${files.map(({ file }) => file.name).join(', ')} of "${files[0]!.identity.title}": ${reasonOf(error)}`;
}

/** Where large files go by themselves there may be a gateway in front of the service, whose limit may not be known. */
function requestBytes({ plan, requestMaxBytes }: ServiceCapabilities): number {
  const known = requestMaxBytes ?? (plan === true ? GATEWAY_REQUEST_BYTES : REQUEST_MAX_BYTES);
  return known - (known < REQUEST_MAX_BYTES ? FIELDS_MAX_BYTES : 0);
}

/** Fewer files may be accepted, or all but the one that is gone or at fault. */
function mayBeDivided(error: unknown): boolean {
  return error instanceof Unreadable || isBroken(error) || (error instanceof RequestFailed && DIVISIBLE.has(error.status ?? 0));
}

function isTooLarge(error: unknown): boolean {
  return error instanceof RequestFailed && error.status === 413;
}

/** Of the file system, which may answer later, for instance when fewer files are open; or of an object store. */
function mayBeRead(error: unknown): boolean {
  return !(error instanceof RequestFailed || error instanceof Unreadable);
}

/** Later uploads name the attempts only as far as needed to find them again. */
async function uploadFiles(delivery: Delivery, batch: readonly OutgoingFile[]): Promise<void> {
  const identities = [...new Set(batch.map(({ identity }) => identity))];
  const positions = new Map(identities.map((identity, index) => [identity, index]));
  const { metadata: _alreadySent, ...run } = delivery.run;
  await upload(
    delivery, run,
    identities.map((identity) => JSON.stringify({ type: 'complete', ...identity })),
    batch.map(({ identity, file }) => ({ index: positions.get(identity)!, file })));
}

function batchesOf(files: readonly OutgoingFile[], bytesMax: number): OutgoingFile[][] {
  const batches: OutgoingFile[][] = [];
  let size = 0;
  for (const outgoing of files) {
    const current = batches.at(-1);
    const { size: bytes } = outgoing.file.content;
    if (current && current.length < UPLOAD_MAX_FILES && size + bytes <= bytesMax) {
      current.push(outgoing);
      size += bytes;
    } else {
      batches.push([outgoing]);
      size = bytes;
    }
  }
  return batches;
}

function halvesOf(batch: OutgoingFile[]): [OutgoingFile[], OutgoingFile[]] {
  const middle = Math.ceil(batch.length / 2);
  return [batch.slice(0, middle), batch.slice(middle)];
}

function sizeOf(files: readonly OutgoingFile[]): number {
  return files.reduce((total, { file }) => total + file.content.size, 0);
}
