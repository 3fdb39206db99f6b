/**
 * Gets one run to the service: results first, whatever its size, then its files.
 * A small run is a single request. Every request carries the same `clientRunId`, so
 * several of them, or a repeated one, end in the same run.
 */
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { UNKNOWN_CAPABILITIES, type ServiceCapabilities } from './capabilities';
import { isForbidden, RequestFailed } from './client';
import { reasonOf } from './failure';
import { deliverFiles, UPLOAD_MAX_FILES } from './file-delivery';
import { Unreadable } from './files';
import { compressedJsonBody } from './http';
import { deliveredRun, FAILURES_IN_A_ROW, isBroken, upload, type DeliveredRun, type Delivery, type OutgoingAttempt, type OutgoingFile } from './outgoing';
import { endsParts, openInParts, type RunInParts } from './run-in-parts';
import { trimmed } from './trim-payload';
import type { AttemptIdentity } from './test-case';
import type { IndexedFile } from './upload';

const CASES_MAX_BYTES = 48 * 1024 * 1024;
const CASES_MAX_COUNT = 20_000;
/** Of a run that takes several requests anyway: a function answers within seconds or not at all. */
const PART_MAX_COUNT = 2_000;
/** Results shrink at least so much when compressed; where they do not, the batch is split. */
const COMPRESSION = 5;
/** Above this the results go ahead alone, so that a slow link cannot lose them. */
const SINGLE_UPLOAD_MAX_BYTES = 16 * 1024 * 1024;
/** The same where larger files may go by themselves: what a function gateway lets through. */
const GATEWAY_UPLOAD_MAX_BYTES = 4 * 1024 * 1024;

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
  /** Largest compressed body that is worth a try. */
  bytesMax: number;
  /** The run as it is held open for several requests; `null` where it is submitted. */
  parts: RunInParts | null | undefined;
  /** The newest answer to a submission. */
  run: DeliveredRun | undefined;
  isAnyAccepted: boolean;
}

export async function deliverRun(delivery: Delivery): Promise<DeliveredRun> {
  const capabilities = delivery.capabilities ?? { ...UNKNOWN_CAPABILITIES };
  const faults: Faults = {
    left: [], failures: 0, last: undefined, tooMany: Infinity, bytesMax: capabilities.requestMaxBytes ?? Infinity,
    parts: undefined, run: undefined, isAnyAccepted: false,
  };
  let isOneRequest = true;
  let cases: OutgoingCase[] = [];
  let size = 0;
  const indexed: IndexedFile[] = [];
  const files: OutgoingFile[] = [];
  for (const { entry, identity, files: own } of delivery.attempts) {
    const json = JSON.stringify(entry);
    if (cases.length >= (faults.parts ? PART_MAX_COUNT : CASES_MAX_COUNT) || (cases.length > 0 && size + json.length > Math.min(CASES_MAX_BYTES, faults.bytesMax * COMPRESSION))) {
      faults.parts ??= await openInParts(delivery) ?? null;
      await submit(delivery, cases, faults);
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
  if (isOneRequest && files.length > 0 && fitsOneUpload(indexed, size, capabilities)) {
    const single = await tryUpload(delivery, cases.map(({ json }) => json), indexed);
    if (single) return { ...single, filesSent: files.length };
  }
  if (isOneRequest || cases.length > 0) await submit(delivery, cases, faults);
  const run = await finished(delivery, faults);
  const left = new Set(faults.left.map(({ identity }) => identity));
  const sent = await deliverFiles({ ...delivery, capabilities }, run.runId, files.filter(({ identity }) => !left.has(identity)));
  return {
    ...run, ...sent,
    filesLeft: [...sent.filesLeft, ...files.filter(({ identity }) => left.has(identity))],
    resultsLeft: faults.left.map(({ json, identity }) => ({ entry: JSON.parse(json) as OutgoingAttempt['entry'], identity })),
  };
}

/** The run once its last result was sent. */
async function finished(delivery: Delivery, faults: Faults): Promise<DeliveredRun> {
  if (!faults.isAnyAccepted) throw faults.last!;
  try {
    return await faults.parts?.finish() ?? faults.run!;
  } catch (error) {
    if (!endsParts(error)) throw error;
    faults.parts = null;
    await submit(delivery, [], faults);
    return faults.run!;
  }
}

function fitsOneUpload(files: readonly IndexedFile[], resultBytes: number, { plan, requestMaxBytes }: ServiceCapabilities): boolean {
  if (files.length > UPLOAD_MAX_FILES) return false;
  const fileBytes = files.reduce((total, { file }) => total + file.content.size, 0);
  if (plan === false) return fileBytes <= SINGLE_UPLOAD_MAX_BYTES;
  return fileBytes + resultBytes <= Math.min(GATEWAY_UPLOAD_MAX_BYTES, requestMaxBytes ?? Infinity);
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

/** Sends results, in as many requests as it takes. Those the service fails on are left: others may tell whether they are at fault. */
async function submit(delivery: Delivery, cases: readonly OutgoingCase[], faults: Faults): Promise<void> {
  const { parts } = faults;
  if (parts && cases.length > PART_MAX_COUNT) {
    for (let from = 0; from < cases.length; from += PART_MAX_COUNT) await submit(delivery, cases.slice(from, from + PART_MAX_COUNT), faults);
    return;
  }
  let sizeBytes = 0;
  try {
    const payload = await compressed(parts ? parts.head : delivery.run, cases);
    sizeBytes = payload.length;
    if (sizeBytes > faults.bytesMax && mayShrink(cases)) throw new RequestFailed('the results are too large for one request', 413);
    const options = faults.failures > 0 || cases.length >= faults.tooMany ? { tries: 1 } : delivery.tries === undefined ? {} : { tries: delivery.tries };
    if (parts) await parts.send(payload, options);
    else faults.run = deliveredRun(await delivery.client.send('/api/test-runs/submit', compressedJsonBody(payload), delivery.deadline, options));
    faults.failures = 0;
    faults.isAnyAccepted = true;
  } catch (error) {
    if (!(error instanceof RequestFailed)) throw error;
    if (parts && endsParts(error)) {
      faults.parts = null;
      return submit(delivery, cases, faults);
    }
    // What was sent is too large for the way there, and so would be the batches behind it.
    if (error.status === 413 && cases.length > 1 && sizeBytes <= faults.bytesMax) faults.bytesMax = Math.max(1, Math.ceil(sizeBytes / 2));
    const [only] = cases;
    const smaller = error.status === 413 && only && cases.length === 1 ? trimmed(only.json) : undefined;
    if (only && smaller !== undefined) return submit(delivery, [{ ...only, json: smaller }], faults);
    const mayBeAtFault = isBroken(error) && ++faults.failures < FAILURES_IN_A_ROW;
    if (mayBeAtFault && only && cases.length === 1) {
      faults.left.push(only);
      faults.last = error;
      return;
    }
    if (cases.length < 2 || !(error.status === 413 || mayBeAtFault)) throw error;
    if (error.status === 413 && !faults.isAnyAccepted && faults.parts === undefined) faults.parts = await openInParts(delivery) ?? null;
    const middle = Math.ceil(cases.length / 2);
    const { length: leftBefore } = faults.left;
    await submit(delivery, cases.slice(0, middle), faults);
    await submit(delivery, cases.slice(middle), faults);
    if (isBroken(error) && faults.left.length === leftBefore) faults.tooMany = Math.min(faults.tooMany, cases.length);
  }
}

function mayShrink(cases: readonly OutgoingCase[]): boolean {
  return cases.length > 1 || trimmed(cases[0]?.json ?? '{}') !== undefined;
}

/** Case by case, so that only the compressed body exists as a whole. */
async function compressed(head: object, cases: readonly OutgoingCase[]): Promise<Buffer> {
  function* pieces(): Generator<string> {
    yield `${JSON.stringify(head).slice(0, -1)},"testCases":[`;
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
