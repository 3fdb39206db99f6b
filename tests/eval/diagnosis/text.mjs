/** Text as a model reads it: lines, tokens, and whether a line names a cause. */

/** Bytes of one token, as the packer of the service estimates. */
const BYTES_PER_TOKEN = 3.5;

export const tokensOf = (text) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** The beginning of a text that is no longer than so many tokens. */
export function within(text, tokens) {
  return Buffer.from(text).subarray(0, Math.floor(tokens * BYTES_PER_TOKEN)).toString();
}

/** Whether one line of the text has every term of one of the lines of evidence. */
export function names(text, evidence) {
  const lines = text.split('\n');
  return evidence.some((terms) => lines.some((line) => terms.every((term) => (typeof term === 'string' ? line.includes(term) : term.test(line)))));
}

/** JSON with each smallest object, and each single value, on a line of its own; texts keep their lines. */
export function linesOf(value, name = '') {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return `${name}: ${value}`;
  const parts = Object.values(value);
  const isSmall = !Array.isArray(value) && parts.length > 0 && JSON.stringify(value).length < 1_500 && parts.every((part) => typeof part !== 'string' || !part.includes('\n'));
  if (isSmall && parts.every((part) => typeof part !== 'object' || part === null || JSON.stringify(part).length < 600)) return `${name}: ${JSON.stringify(value)}`;
  return Object.entries(value).map(([key, part]) => linesOf(part, Array.isArray(value) ? name : key)).join('\n');
}
