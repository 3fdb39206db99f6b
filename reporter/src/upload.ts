/**
 * The multipart bodies of the upload call: results with their files, and reports
 * attached to a run that is already there.
 */
import { read, sha256, type AttachmentFile } from './files';
import type { RequestBody } from './http';
import { multipartBody, type Part } from './multipart';
import type { RunFields } from './run';
import type { AttemptIdentity } from './test-case';

export interface IndexedFile {
  /** Position of the attempt in the test cases of the same request. */
  index: number;
  file: AttachmentFile;
}

/** Fields come before files, so that the service can check them before it stores bytes. */
export async function uploadBody(
  run: RunFields, cases: readonly string[], files: readonly IndexedFile[],
): Promise<RequestBody> {
  const parts: Part[] = [
    { name: 'projectName', value: run.projectName },
    { name: 'testRun', value: JSON.stringify(run) },
    { name: 'testCases', value: `[${cases.join(',')}]` },
    { name: 'trace_hashes', value: JSON.stringify(await traceHashes(files)) },
  ];
  for (const [index, own] of byIndex(files)) {
    const traces = own.filter(({ kind }) => kind === 'trace');
    const attachments = own.filter(({ kind }) => kind === 'attachment');
    parts.push(...traces.map((file) => filePart(`trace_${index}`, file)));
    if (attachments.length > 0) {
      parts.push({ name: `attach_meta_${index}`, value: JSON.stringify(attachments.map(metaOf)) });
      parts.push(...attachments.map((file) => filePart(`attach_file_${index}`, file)));
    }
  }
  return multipartBody(parts);
}

/** A run that is there already, for what is attached to it later. */
export interface AttachedRun {
  runId: number;
  projectName: string;
  startedAtMs: number;
  /** Says which of several processes the run need not wait for any more. */
  clientRunId: string;
}

/** A report on its way: what it is, and the archive of its directory. */
export interface OutgoingReport {
  type: string;
  label: string | undefined;
  /** Bytes of the archive; undefined when it is made while it is sent. */
  size?: number;
  open(): AsyncIterable<Uint8Array>;
}

export function reportBody(run: AttachedRun, { type, label, size, open }: OutgoingReport): RequestBody {
  return multipartBody([
    ...fieldsOf(run),
    ...(label === undefined ? [] : [{ name: `report_label_${type}`, value: label }]),
    {
      name: `report_${type}`,
      fileName: `${type}-report.gz`,
      contentType: 'application/gzip',
      ...(size === undefined ? {} : { size }),
      open,
    },
  ]);
}

function fieldsOf({ runId, projectName, startedAtMs, clientRunId }: AttachedRun): Part[] {
  const alreadyThere = {
    projectName, status: 'already-submitted', startTime: new Date(startedAtMs).toISOString(), duration: 0,
    totalTests: 0, passedTests: 0, failedTests: 0, skippedTests: 0,
  };
  return [
    { name: 'testRunId', value: String(runId) },
    { name: 'projectName', value: projectName },
    { name: 'clientRunId', value: clientRunId },
    { name: 'testRun', value: JSON.stringify(alreadyThere) },
    { name: 'testCases', value: '[]' },
  ];
}

/** The attempt that a file belongs to, as the service finds it again. */
export function caseReference(identity: AttemptIdentity): Record<string, unknown> {
  const { title, location, retries, suitePath, repeatEachIndex, browser } = identity;
  // Results that another process kept on disk are as they were written.
  return { title, location, retries, suitePath, repeatEachIndex, browserProject: browser?.projectName };
}

/** Files of one attempt of a streamed run. */
export async function caseFilesBody(
  streamToken: string, identity: AttemptIdentity, files: readonly AttachmentFile[],
): Promise<RequestBody> {
  const trace = files.find(({ kind }) => kind === 'trace');
  const attachments = files.filter(({ kind }) => kind === 'attachment');
  return multipartBody([
    { name: 'streamToken', value: streamToken },
    { name: 'testCase', value: JSON.stringify(caseReference(identity)) },
    ...(trace ? [{ name: 'trace_hash', value: await sha256(trace.content) }, filePart('trace', trace)] : []),
    ...(attachments.length > 0 ? [{ name: 'attach_meta', value: JSON.stringify(attachments.map(metaOf)) }] : []),
    ...attachments.map((file) => filePart('attach_file', file)),
  ]);
}

/** Says that no report will come, so that the run does not wait for one. */
export function noReportBody(run: AttachedRun): RequestBody {
  return multipartBody(fieldsOf(run));
}

async function traceHashes(files: readonly IndexedFile[]): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for (const { index, file } of files) {
    if (file.kind === 'trace') hashes[index] = await sha256(file.content);
  }
  return hashes;
}

function byIndex(files: readonly IndexedFile[]): Map<number, AttachmentFile[]> {
  const groups = new Map<number, AttachmentFile[]>();
  for (const { index, file } of files) groups.set(index, [...(groups.get(index) ?? []), file]);
  return groups;
}

function metaOf({ name, contentType, originalName }: AttachmentFile): Record<string, string> {
  return { name, contentType, originalName };
}

function filePart(name: string, file: AttachmentFile): Part {
  return {
    name,
    fileName: file.originalName,
    contentType: file.contentType,
    size: file.content.size,
    open: () => read(file.content),
  };
}
