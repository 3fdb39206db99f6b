/**
 * Gets one run to the service: results first, whatever its size, then its files.
 * A small run is a single request. Every request carries the same `clientRunId`, so
 * several of them, or a repeated one, end in the same run.
 */
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { isForbidden, isTransient, RequestFailed, type Client, type Deadline, type JsonObject } from './client';
import { reasonOf } from './failure';
import { Unreadable, type AttachmentFile } from './files';
import { bytesBody } from './http';
import type { Log } from './log';
import type { RunFields } from './run';
import { slimmed } from './slim';
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
}

export interface OutgoingFile {
  identity: AttemptIdentity;
  file: AttachmentFile;
}

const CASES_MAX_BYTES = 48 * 1024 * 1024;
const CASES_MAX_COUNT = 20_000;
/** Above this the results go ahead alone, so that a slow link cannot lose them. */
const SINGLE_UPLOAD_MAX_BYTES = 16 * 1024 * 1024;
const UPLOAD_MAX_BYTES = 32 * 1024 * 1024;
const UPLOAD_MAX_FILES = 200;
/** Enough to find the one result or file the service fails on; after more it is the service that is broken. */
const FAILURES_IN_A_ROW = 16;
/** A smaller batch may be accepted after these answers. */
const DIVISIBLE = new Set([400, 413, 422]);

interface OutgoingCase {
  json: string;
  identity: AttemptIdentity;
}

/** What is known about results the service may be failing on. */
interface Faults {
  left: OutgoingCase[];
  /** Since a request was accepted. */
  failures: number;
  last: RequestFailed | undefined;
  /** Fewest results of a batch the service failed on and then took in parts: it is not waited for to take as many. */
  tooMany: number;
}

export async function deliverRun(delivery: Delivery): Promise<DeliveredRun> {
  const faults: Faults = { left: [], failures: 0, last: undefined, tooMany: Infinity };
  let run: DeliveredRun | undefined;
  let isOneRequest = true;
  let cases: OutgoingCase[] = [];
  let size = 0;
  const indexed: IndexedFile[] = [];
  const files: OutgoingFile[] = [];
  for (const { entry, identity, files: own } of delivery.attempts) {
    const json = JSON.stringify(entry);
    if (cases.length >= CASES_MAX_COUNT || (cases.length > 0 && size + json.length > CASES_MAX_BYTES)) {
      run = await submit(delivery, cases, faults) ?? run;
      isOneRequest = false;
      cases = [];
      size = 0;
    }
    for (const file of own) {
      indexed.push({ index: cases.length, file });
      files.push({ identity, file });
    }
    cases.push({ json, identity });
    size += json.length;
  }
  if (isOneRequest && files.length > 0 && fitsOneUpload(indexed)) {
    const single = await tryUpload(delivery, cases.map(({ json }) => json), indexed);
    if (single) return { ...single, filesSent: files.length };
  }
  if (isOneRequest || cases.length > 0) run = await submit(delivery, cases, faults) ?? run;
  if (!run) throw faults.last!;
  const left = new Set(faults.left.map(({ identity }) => identity));
  const sent = await sendFiles(delivery, files.filter(({ identity }) => !left.has(identity)));
  return {
    ...run, ...sent,
    filesLeft: [...sent.filesLeft, ...files.filter(({ identity }) => left.has(identity))],
    resultsLeft: faults.left.map(({ json, identity }) => ({ entry: JSON.parse(json) as OutgoingAttempt['entry'], identity })),
  };
}

function fitsOneUpload(files: readonly IndexedFile[]): boolean {
  return files.length <= UPLOAD_MAX_FILES
    && files.reduce((total, { file }) => total + file.content.size, 0) <= SINGLE_UPLOAD_MAX_BYTES;
}

/** Undefined when the service answered but did not take it: the results are then sent without files. */
async function tryUpload(
  delivery: Delivery, cases: readonly string[], files: readonly IndexedFile[],
): Promise<DeliveredRun | undefined> {
  try {
    return await upload(delivery, delivery.run, cases, files);
  } catch (error) {
    const refused = error instanceof RequestFailed && error.status !== undefined && !isForbidden(error);
    if (!refused && !(error instanceof Unreadable)) throw error;
    delivery.log.detail(`results with files were not accepted (${reasonOf(error)}); sending the results alone`);
    return undefined;
  }
}

/** Undefined when the service fails on each of these: others may tell whether they are at fault. */
async function submit(
  delivery: Delivery, cases: readonly OutgoingCase[], faults: Faults,
): Promise<DeliveredRun | undefined> {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  try {
    const body = bytesBody(await compressed(delivery.run, cases), headers);
    const options = faults.failures > 0 || cases.length >= faults.tooMany ? { tries: 1 } : sendOptions(delivery);
    const run = deliveredRun(await delivery.client.send('/api/test-runs/submit', body, delivery.deadline, options));
    faults.failures = 0;
    return run;
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    const [only] = cases;
    const slim = error.status === 413 && only && cases.length === 1 ? slimmed(only.json) : undefined;
    if (only && slim !== undefined) return submit(delivery, [{ ...only, json: slim }], faults);
    const mayBeAtFault = isBroken(error) && ++faults.failures < FAILURES_IN_A_ROW;
    if (mayBeAtFault && only && cases.length === 1) {
      faults.left.push(only);
      faults.last = error;
      return undefined;
    }
    if (cases.length < 2 || !(error.status === 413 || mayBeAtFault)) throw error;
    const middle = Math.ceil(cases.length / 2);
    const { length: leftBefore } = faults.left;
    const first = await submit(delivery, cases.slice(0, middle), faults);
    const run = await submit(delivery, cases.slice(middle), faults) ?? first;
    if (isBroken(error) && faults.left.length === leftBefore) faults.tooMany = Math.min(faults.tooMany, cases.length);
    return run;
  }
}

/** Case by case, so that only the compressed body exists as a whole. */
async function compressed(run: RunFields, cases: readonly OutgoingCase[]): Promise<Buffer> {
  function* pieces(): Generator<string> {
    yield `${JSON.stringify(run).slice(0, -1)},"testCases":[`;
    for (const [index, { json }] of cases.entries()) yield index === 0 ? json : `,${json}`;
    yield ']}';
  }
  const chunks: Buffer[] = [];
  const gzip = createGzip();
  const source = Readable.from(pieces(), { objectMode: false });
  // Without this, something that has no form in JSON would be an error nobody listens to, and end the process.
  source.once('error', (error) => gzip.destroy(error));
  for await (const chunk of source.pipe(gzip)) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function sendFiles(
  delivery: Delivery, files: readonly OutgoingFile[],
): Promise<Pick<DeliveredRun, 'filesSent' | 'filesLost' | 'firstFileLost' | 'filesLeft'>> {
  let filesSent = 0;
  let firstFileLost: string | undefined;
  let failures = 0;
  /** Fewest files of a batch the service failed on since it took one, and of one it then took in parts: see {@link Faults}. */
  let failedOn = Infinity;
  let tooMany = Infinity;
  const filesLeft: OutgoingFile[] = [];
  const queue = batchesOf(files);
  for (let batch = queue.shift(); batch; batch = queue.shift()) {
    try {
      await uploadFiles(failures > 0 || batch.length >= tooMany ? { ...delivery, tries: 1 } : delivery, batch);
      filesSent += batch.length;
      failures = 0;
      tooMany = Math.min(tooMany, failedOn);
      failedOn = Infinity;
    } catch (error) {
      delivery.log.detail(`${batch.length} file(s) were not accepted: ${reasonOf(error)}`);
      const mayBeAtFault = isBroken(error) && ++failures < FAILURES_IN_A_ROW;
      if ((isTransient(error) && !mayBeAtFault) || isForbidden(error)) {
        filesLeft.push(...batch, ...queue.flat());
        break;
      }
      if (batch.length > 1 && mayBeDivided(error)) {
        const middle = Math.ceil(batch.length / 2);
        queue.unshift(batch.slice(0, middle), batch.slice(middle));
        if (mayBeAtFault) failedOn = Math.min(failedOn, batch.length);
      } else {
        // The one at fault was in all of those batches.
        failedOn = Infinity;
        if (mayBeAtFault || mayBeRead(error)) filesLeft.push(...batch);
        else firstFileLost ??= `${batch.map(({ file }) => file.name).join(', ')} of "${batch[0]!.identity.title}": ${reasonOf(error)}`;
      }
    }
  }
  return { filesSent, filesLost: files.length - filesSent - filesLeft.length, ...(firstFileLost === undefined ? {} : { firstFileLost }), filesLeft };
}

/** Fewer files may be accepted, or all but the one that is gone or at fault. */
function mayBeDivided(error: unknown): boolean {
  return error instanceof Unreadable || isBroken(error) || (error instanceof RequestFailed && DIVISIBLE.has(error.status ?? 0));
}

/** Of the file system, which may answer later, for instance when fewer files are open. */
function mayBeRead(error: unknown): boolean {
  return !(error instanceof RequestFailed || error instanceof Unreadable);
}

function isBroken(error: unknown): boolean {
  return error instanceof RequestFailed && error.status === 500;
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

async function upload(
  delivery: Delivery, run: RunFields, cases: readonly string[], files: readonly IndexedFile[],
): Promise<DeliveredRun> {
  const body = await uploadBody(run, cases, files);
  return deliveredRun(await delivery.client.send('/api/test-runs/upload', body, delivery.deadline, sendOptions(delivery)));
}

function sendOptions({ tries }: Delivery): { tries?: number } {
  return tries === undefined ? {} : { tries };
}

function batchesOf(files: readonly OutgoingFile[]): OutgoingFile[][] {
  const batches: OutgoingFile[][] = [];
  let size = 0;
  for (const outgoing of files) {
    const current = batches.at(-1);
    const { size: bytes } = outgoing.file.content;
    if (current && current.length < UPLOAD_MAX_FILES && size + bytes <= UPLOAD_MAX_BYTES) {
      current.push(outgoing);
      size += bytes;
    } else {
      batches.push([outgoing]);
      size = bytes;
    }
  }
  return batches;
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
