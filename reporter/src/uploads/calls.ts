/**
 * The two calls around a direct upload: the plan, which says what the service has and where the rest goes, and the
 * commit, which checks what was sent and attaches it. No retries and no decisions here, see stage-files.ts.
 */
import { RequestFailed, type Client, type Deadline, type JsonObject, type PutTarget } from '../client';
import { jsonBody } from '../http';
import { isRecord } from '../options';
import type { StagedFile } from './staged-file';

/** The run that the files belong to, and who may attach them. */
export type UploadTarget =
  | { runId: number; streamToken: string }
  /** With the credentials of the user. */
  | { runId: number; projectName: string };

export interface HashedFile {
  file: StagedFile;
  sha256: string;
}

export interface Ticket extends PutTarget {
  ticket: string;
}

export type PlannedFile =
  | { status: 'have' }
  | { status: 'missing'; upload: Ticket }
  | { status: 'too_large' | 'invalid'; message: string };

export interface CommittedItem {
  status: string;
  message: string | undefined;
}

/** The service has no such calls: files go with the requests that every service knows. */
export class PlanUnsupported extends RequestFailed {
  constructor() {
    super('the service takes no direct uploads', 404);
  }
}

/** What became of each file, in order. */
export async function planUploads(
  client: Client, target: UploadTarget, files: readonly HashedFile[], deadline: Deadline,
): Promise<PlannedFile[]> {
  const body = {
    ...target,
    files: files.map(({ sha256, file: { sizeBytes, kind, contentType, name } }) => ({ sha256, size: sizeBytes, kind, contentType, name })),
  };
  let answer: JsonObject;
  try {
    answer = await client.send('/api/uploads/plan', jsonBody(body), deadline, optionsFor(target));
  } catch (error) {
    throw isUnsupported(error) ? new PlanUnsupported() : error;
  }
  const planned = recordsOf(answer['files']);
  // Something that answers 200 to every path is not a service with uploads.
  if (planned.length !== files.length) throw new PlanUnsupported();
  return planned.map(plannedFile);
}

export async function commitUploads(
  client: Client, target: UploadTarget, items: readonly (HashedFile & { ticket: string | undefined })[], deadline: Deadline,
): Promise<CommittedItem[]> {
  const body = {
    ...target,
    items: items.map(({ sha256, ticket, file: { kind, link } }) => ({ sha256, kind, ...(ticket === undefined ? {} : { ticket }), link })),
  };
  const committed = recordsOf((await client.send('/api/uploads/commit', jsonBody(body), deadline, optionsFor(target)))['items']);
  if (committed.length !== items.length) throw new RequestFailed('the answer does not name every file', 200);
  return committed.map(({ status, message }) => ({
    status: typeof status === 'string' ? status : 'invalid',
    message: typeof message === 'string' ? message : undefined,
  }));
}

function plannedFile({ status, upload, message }: JsonObject): PlannedFile {
  if (status === 'have') return { status };
  if (status === 'missing' && isRecord(upload) && typeof upload['url'] === 'string' && typeof upload['ticket'] === 'string') {
    const { url, ticket, headers, direct } = upload as JsonObject & { url: string; ticket: string };
    return { status, upload: { url, ticket, isDirect: direct === true, headers: textsOf(headers) } };
  }
  return {
    status: status === 'too_large' ? status : 'invalid',
    message: typeof message === 'string' ? message : status === 'too_large' ? 'the file is larger than the service takes' : 'the service does not take the file',
  };
}

/** A missing run, or a missing path: only the first has a code. Older services answer 405 where the path is one of theirs. */
function isUnsupported(error: unknown): boolean {
  return error instanceof RequestFailed
    && (error.status === 405 || error.status === 501 || (error.status === 404 && error.code !== 'run_not_found'));
}

function optionsFor(target: UploadTarget): { tries: number; withToken: boolean } {
  return { tries: 1, withToken: 'streamToken' in target };
}

function recordsOf(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function textsOf(headers: unknown): Record<string, string> {
  if (!isRecord(headers)) return {};
  return Object.fromEntries(Object.entries(headers).filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
}
