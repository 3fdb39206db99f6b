/**
 * A service that takes direct uploads, as strict as the contract: hashes are checked, a ticket takes one object, staged
 * bytes belong to nothing before their commit. In front of it may be a gateway with a limit, beside it a bucket.
 */
import { createHash, randomBytes } from 'node:crypto';
import { ACCEPTED, field, fileBytes, liveReplies, startService, STREAM_TOKEN, type Received, type Reply, type Service } from './service';

export interface UploadServiceOptions {
  /** Bytes go to a bucket of its own instead of through the service. */
  isDirect?: boolean;
  /** What a gateway in front of a function lets through, with binary bodies as base64. */
  gatewayBytes?: number;
  /** Answers instead; of the bucket as well. */
  special?(request: Received, count: number): Reply | undefined;
}

interface Linked {
  sha256: string;
  kind: string;
  link: Record<string, unknown>;
}

interface Staged {
  sha256: string;
  size: number;
  kind: string;
  bytes?: Buffer;
  isUsed?: boolean;
}

export interface UploadService {
  service: Service;
  bucket: Service;
  blobs: Map<string, Buffer>;
  linked: Linked[];
  /** Files that came in multipart requests, by name. */
  together: Map<string, Buffer>;
  /** Every ticket given so far is of no use any more. */
  expire(): void;
  close(): Promise<void>;
}

export const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** The header that a signed address asks for. */
const SIGNED = { 'x-amz-meta-ticket': 'signed' };

export async function startUploadService(
  { isDirect = false, gatewayBytes, special = () => undefined }: UploadServiceOptions = {}, port = 0,
): Promise<UploadService> {
  const blobs = new Map<string, Buffer>();
  const tickets = new Map<string, Staged>();
  const linked: Linked[] = [];
  const together = new Map<string, Buffer>();

  const take = (staged: Staged | undefined, { raw }: Received): Reply => {
    if (!staged) return { status: isDirect ? 403 : 404, body: { code: 'ticket_not_found' } };
    if (staged.bytes) return raw.equals(staged.bytes) ? {} : { status: 409, body: { code: 'ticket_used' } };
    if (raw.length !== staged.size) return { status: 422, body: { code: 'hash_mismatch' } };
    staged.bytes = raw;
    return { body: { sha256: sha256(raw), size: raw.length } };
  };
  const bucket = await startService((request, count) => {
    const { authorization, cookie, accept, 'content-length': length, host, connection, ...others } = request.headers;
    if (authorization ?? cookie ?? accept) return { status: 400, body: 'more headers than were signed' };
    if (JSON.stringify(others) !== JSON.stringify(SIGNED) || !length) return { status: 400, body: `headers ${JSON.stringify(others)}` };
    return special(request, count) ?? take(tickets.get(request.path.slice(1)), request);
  });

  const isAuthorised = ({ json, headers }: Received): boolean => (json['streamToken'] !== undefined
    ? json['streamToken'] === STREAM_TOKEN && headers.authorization === undefined && json['runId'] === 7
    : headers.authorization === 'Bearer pd_1' && typeof json['projectName'] === 'string');
  const plan = ({ json }: Received): Reply => {
    const files = (json['files'] as { sha256: string; size: number; kind: string }[]).map(({ sha256: hash, size, kind }) => {
      if (blobs.has(hash)) return { sha256: hash, size, kind, status: 'have' };
      const ticket = randomBytes(32).toString('hex');
      tickets.set(ticket, { sha256: hash, size, kind });
      const place = isDirect
        ? { url: `${bucket.url}/${ticket}`, headers: SIGNED, direct: true }
        : { url: `https://another.name.example/api/uploads/${ticket}`, headers: {}, direct: false };
      return { sha256: hash, size, kind, status: 'missing', upload: { ticket, method: 'PUT', ...place } };
    });
    return { body: { success: true, maxBytes: 2 ** 29, expiresAt: new Date().toISOString(), files } };
  };
  const commit = ({ json }: Received): Reply => {
    const items = (json['items'] as { sha256: string; kind: string; ticket?: string; link: Record<string, unknown> }[]).map((item) => {
      const { sha256: hash, kind, ticket, link } = item;
      const staged = ticket === undefined ? undefined : tickets.get(ticket);
      if (!blobs.has(hash)) {
        if (!staged?.bytes || staged.isUsed) return { sha256: hash, status: 'not_uploaded' };
        if (staged.sha256 !== hash || sha256(staged.bytes) !== hash) {
          tickets.delete(ticket!);
          return { sha256: hash, status: 'hash_mismatch' };
        }
        blobs.set(hash, staged.bytes);
        staged.isUsed = true;
      }
      linked.push({ sha256: hash, kind, link });
      return { sha256: hash, status: 'linked', fileId: linked.length };
    });
    return { body: { success: true, items } };
  };
  const keepTogether = async ({ form }: Received): Promise<void> => {
    for (const [name, value] of form.entries()) {
      if (typeof value !== 'string') together.set(`${name}:${value.name}`, await fileBytes(value));
    }
  };
  const opened = { capabilities: ['gzip', 'uploads.plan'], limits: gatewayBytes === undefined ? {} : { requestMaxBytes: gatewayBytes } };
  const live = liveReplies();
  const service = await startService((request, count) => {
    const isText = request.headers['content-type']?.startsWith('application/json') && !request.headers['content-encoding'];
    const passed = isText ? request.raw.length : Math.ceil(request.raw.length * 4 / 3);
    if (gatewayBytes !== undefined && passed > gatewayBytes) return { status: 413, body: { message: 'Request Too Long' } };
    const answer = special(request, count);
    if (answer) return answer;
    const [, ticket] = /^\/api\/uploads\/([0-9a-f]{64})$/.exec(request.path) ?? [];
    if (ticket !== undefined && request.method === 'PUT') {
      return request.headers.authorization ?? request.headers.cookie ? { status: 400, body: {} } : take(tickets.get(ticket), request);
    }
    if (request.path.startsWith('/api/uploads/') && !isAuthorised(request)) return { status: 401, body: {} };
    if (request.path === '/api/uploads/plan') return plan(request);
    if (request.path === '/api/uploads/commit') return commit(request);
    if (request.headers['content-type']?.startsWith('multipart/')) {
      return { body: ACCEPTED, after: keepTogether(request) };
    }
    const reply = live(request, count);
    return /\/(start|begin|setup)$/.test(request.path) ? { ...reply, body: { ...(reply.body as object), ...opened } } : reply;
  }, port);

  return {
    service, bucket, blobs, linked, together,
    expire: () => tickets.clear(),
    async close() {
      await service.close();
      await bucket.close();
    },
  };
}

/** Names of the calls made, without the tickets. */
export function calls({ service, bucket }: UploadService): string[] {
  return [...service.received.map(({ path }) => path.replace('/api/', '').replace(/uploads\/[0-9a-f]{64}/, 'PUT')), ...bucket.received.map(() => 'PUT bucket')];
}

export function plannedOf({ service }: UploadService): { sha256: string; size: number; kind: string }[][] {
  return service.received.filter(({ path }) => path === '/api/uploads/plan').map(({ json }) => json['files'] as { sha256: string; size: number; kind: string }[]);
}

export { field };
