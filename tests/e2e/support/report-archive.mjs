/** The form in which reporters send the folder of a report: gzip of path and content records. */
import { gzipSync } from 'node:zlib';

export function reportArchive(entries) {
  const fields = Object.entries(entries).flat().map((field) => Buffer.from(field));
  return gzipSync(Buffer.concat(fields.flatMap((field) => [lengthOf(field), field])));
}

function lengthOf(field) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(field.length);
  return length;
}
