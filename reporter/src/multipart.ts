/**
 * A multipart/form-data body that is produced while it is sent, so its size does not
 * matter. It can be produced again for a retry.
 */
import { randomUUID } from 'node:crypto';
import type { RequestBody } from './http';

export type Part =
  | { name: string; value: string }
  | { name: string; fileName: string; contentType: string; size?: number; open(): AsyncIterable<Uint8Array> };

export function multipartBody(parts: readonly Part[]): RequestBody {
  const boundary = `callboard-${randomUUID()}`;
  const heads = parts.map((part) => Buffer.from(headOf(part, boundary)));
  const end = Buffer.from(`--${boundary}--\r\n`);
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    length: lengthOf(parts, heads, end),
    async* open() {
      for (const [index, part] of parts.entries()) {
        yield heads[index]!;
        if ('value' in part) yield Buffer.from(part.value);
        else yield* part.open();
        yield Buffer.from('\r\n');
      }
      yield end;
    },
  };
}

function headOf(part: Part, boundary: string): string {
  const disposition = `Content-Disposition: form-data; name="${quoted(part.name)}"`;
  return 'value' in part
    ? `--${boundary}\r\n${disposition}\r\n\r\n`
    : `--${boundary}\r\n${disposition}; filename="${quoted(part.fileName)}"\r\nContent-Type: ${headerValue(part.contentType)}\r\n\r\n`;
}

/** No header may hold these, and a request that has one is refused as a whole. */
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Escapes as browsers do, and other control characters as file systems do. */
function quoted(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '%0D%0A').replaceAll('"', '%22').replace(new RegExp(CONTROL, 'g'), '_');
}

function headerValue(contentType: string): string {
  return CONTROL.test(contentType) ? 'application/octet-stream' : contentType;
}

/** Undefined as soon as one part is made on the fly: the body is then sent in chunks. */
function lengthOf(parts: readonly Part[], heads: readonly Buffer[], end: Buffer): number | undefined {
  let total = end.length;
  for (const [index, part] of parts.entries()) {
    const size = 'value' in part ? Buffer.byteLength(part.value) : part.size;
    if (size === undefined) return undefined;
    total += heads[index]!.length + size + 2;
  }
  return total;
}
