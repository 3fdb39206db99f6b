/**
 * A file on its way through plan, PUT and commit: what it is, how its bytes are read, and where it belongs.
 */
import { createHash } from 'node:crypto';
import { read, type AttachmentFile } from '../files';
import type { AttemptIdentity } from '../test-case';
import { caseReference, type OutgoingReport } from '../upload';

export interface StagedFile {
  kind: 'trace' | 'attachment' | 'report';
  name: string;
  contentType: string;
  sizeBytes: number;
  /** The bytes from the first on; called once to hash them and once per try to send them. */
  open(): AsyncIterable<Uint8Array>;
  /** What the file is attached to, as the commit names it. */
  link: Record<string, unknown>;
}

/**
 * A staged file takes three requests (plan, PUT, commit), and a small one shares a multipart request with others. From
 * this size on the bytes outweigh the requests: the PUT may go to the bucket instead of through the service, a file the
 * project has is not sent, and a retry repeats one file instead of all files of the request.
 */
export const STAGED_MIN_BYTES = 1024 * 1024;

export function stagedAttachment(identity: AttemptIdentity, file: AttachmentFile): StagedFile {
  const { kind, name, contentType, originalName, content } = file;
  return {
    kind, name, contentType,
    sizeBytes: content.size,
    open: () => read(content),
    link: { type: kind, testCase: caseReference(identity), name, contentType, originalName },
  };
}

export function stagedReport({ type, label, open }: OutgoingReport, sizeBytes: number): StagedFile {
  return {
    kind: 'report',
    name: `${type}-report.gz`,
    contentType: 'application/gzip',
    sizeBytes, open,
    link: { type: 'report', reportType: type, ...(label === undefined ? {} : { label }) },
  };
}

/** SHA-256 of the bytes as 64 lower-case hex characters; they are never held as a whole. */
export async function hashOf(file: StagedFile): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of file.open()) hash.update(chunk);
  return hash.digest('hex');
}
