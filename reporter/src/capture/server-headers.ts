/**
 * What the application under test says about a request in its response headers: log
 * entries and spans, as base64 of compressed JSON. Anything malformed is ignored.
 */
import { gunzipSync } from 'node:zlib';

const HEADER_MAX_CHARS = 16 * 1024;
const JSON_MAX_BYTES = 256 * 1024;
const LOGS_MAX = 50;
const SPANS_MAX = 100;

type Headers = Readonly<Record<string, string>>;

export interface ServerSide {
  serverLogs?: unknown[];
  serverTraces?: unknown[];
}

export function serverSideOf(headers: Headers): ServerSide {
  const serverLogs = decoded(headers['x-service-logs'], LOGS_MAX);
  const serverTraces = decoded(headers['x-service-trace'], SPANS_MAX);
  return { ...(serverLogs ? { serverLogs } : {}), ...(serverTraces ? { serverTraces } : {}) };
}

function decoded(header: string | undefined, countMax: number): unknown[] | undefined {
  if (!header || header.length > HEADER_MAX_CHARS) return undefined;
  try {
    const json = gunzipSync(Buffer.from(header, 'base64'), { maxOutputLength: JSON_MAX_BYTES });
    const list: unknown = JSON.parse(json.toString('utf8'));
    return Array.isArray(list) && list.length > 0 ? list.slice(0, countMax) : undefined;
  } catch {
    return undefined;
  }
}
