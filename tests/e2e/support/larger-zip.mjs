/** An archive with one more member, which is stored as it is, so that it is as large as a test needs it. */
import { crc32 } from 'node:zlib';

const END = 0x06054b50;

export function largerZip(zip, name, content) {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || zip.readUInt32LE(end) !== END) throw new Error('no end of an archive');
  const count = zip.readUInt16LE(end + 10);
  const directorySize = zip.readUInt32LE(end + 12);
  const directoryAt = zip.readUInt32LE(end + 16);
  const path = Buffer.from(name);

  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(20, 4);
  local.writeUInt16LE(0x21, 12);
  local.writeUInt32LE(crc32(content), 14);
  local.writeUInt32LE(content.length, 18);
  local.writeUInt32LE(content.length, 22);
  local.writeUInt16LE(path.length, 26);

  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(20, 4);
  entry.writeUInt16LE(20, 6);
  local.copy(entry, 14, 12, 30);
  entry.writeUInt16LE(0, 30);
  entry.writeUInt32LE(directoryAt, 42);

  const directory = zip.subarray(directoryAt, directoryAt + directorySize);
  const tail = Buffer.from(zip.subarray(end, end + 22));
  tail.writeUInt16LE(count + 1, 8);
  tail.writeUInt16LE(count + 1, 10);
  tail.writeUInt32LE(directorySize + entry.length + path.length, 12);
  tail.writeUInt32LE(directoryAt + local.length + path.length + content.length, 16);
  tail.writeUInt16LE(0, 20);
  return Buffer.concat([zip.subarray(0, directoryAt), local, path, content, directory, entry, path, tail]);
}
