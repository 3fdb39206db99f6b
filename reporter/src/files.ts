/**
 * The files of one attempt: its trace and its attachments. Only paths, sizes and
 * bodies Playwright already holds are kept here; bytes are read while they are sent.
 */
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import path from 'node:path';
import type { TestResult } from '@playwright/test/reporter';
import type { Settings } from './options';

export type Content =
  | { kind: 'file'; path: string; size: number }
  | { kind: 'bytes'; bytes: Uint8Array; size: number };

export interface AttachmentFile {
  kind: 'trace' | 'attachment';
  name: string;
  contentType: string;
  originalName: string;
  content: Content;
}

/** Attachments of capture fixtures are data for the reporter, those of Playwright itself are private. */
const INTERNAL_NAME = /^(callboard-|_)/;

export function filesOf(
  result: TestResult, settings: Pick<Settings, 'uploadTraces' | 'uploadAttachments'>,
): AttachmentFile[] {
  const files: AttachmentFile[] = [];
  for (const attachment of result.attachments) {
    if (INTERNAL_NAME.test(attachment.name)) continue;
    const content = contentOf(attachment);
    if (!content) continue;
    // An attempt has one trace; anything else that calls itself one is an attachment.
    const isTrace = isTraceArchive(attachment) && !files.some((file) => file.kind === 'trace');
    if (isTrace ? !settings.uploadTraces : !settings.uploadAttachments) continue;
    files.push({
      kind: isTrace ? 'trace' : 'attachment',
      name: attachment.name,
      contentType: attachment.contentType || 'application/octet-stream',
      originalName: attachment.path ? path.basename(attachment.path) : attachment.name,
      content,
    });
  }
  return files;
}

export async function sha256(content: Content, signal?: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of read(content)) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
  return hash.digest('hex');
}

/** A file that is gone, or not what it was when its test ended: trying again does not bring it back. */
export class Unreadable extends Error {}

/** Exactly the announced number of bytes, or `Unreadable`: a file may change while it is sent. */
export async function* read(content: Content): AsyncGenerator<Uint8Array> {
  if (content.kind === 'bytes') {
    yield content.bytes;
    return;
  }
  if (content.size === 0) return;
  let sent = 0;
  try {
    for await (const chunk of createReadStream(content.path, { end: content.size - 1 })) {
      const bytes = chunk as Buffer;
      sent += bytes.length;
      yield bytes;
    }
  } catch (error) {
    throw isLasting(error) ? new Unreadable((error as Error).message) : error;
  }
  if (sent !== content.size) throw new Unreadable(`${content.path} became shorter while it was sent`);
}

/** A file system over the network may answer again, and so may a process with too many open files. */
function isLasting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && LASTING.has(error.code);
}

const LASTING = new Set<unknown>(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM']);

function isTraceArchive(attachment: TestResult['attachments'][number]): boolean {
  return attachment.name === 'trace' && attachment.path !== undefined && attachment.path.endsWith('.zip');
}

/** Undefined when the file is gone, for instance because Playwright keeps only those of failures. */
function contentOf(attachment: TestResult['attachments'][number]): Content | undefined {
  if (attachment.body) return { kind: 'bytes', bytes: attachment.body, size: attachment.body.length };
  if (!attachment.path) return undefined;
  try {
    const stats = statSync(attachment.path);
    return stats.isFile() ? { kind: 'file', path: attachment.path, size: stats.size } : undefined;
  } catch {
    return undefined;
  }
}
