/**
 * A locator as it is written in a test, taken apart: the last call of the chain with its
 * arguments, and the whole as text.
 */
export interface WrittenLocator {
  method: string;
  args: unknown[];
  raw: string;
}

const RAW_MAX_CHARS = 1_000;

/** `raw` is what Playwright prints for a locator, for instance `getByRole('button', { name: 'Pay' })`. */
export function parseLocator(raw: string): WrittenLocator {
  const call = calls(raw).at(-1);
  const text = raw.slice(0, RAW_MAX_CHARS);
  return call ? { method: call.method, args: argumentsOf(call.inside), raw: text } : { method: 'locator', args: [raw], raw: text };
}

/** Calls such as `first()` narrow a locator; which one it is, the call before says. */
function calls(raw: string): { method: string; inside: string }[] {
  const found: { method: string; inside: string }[] = [];
  for (let at = 0; at < raw.length;) {
    const name = /^\.?([A-Za-z]+)\(/.exec(raw.slice(at))?.[0];
    if (!name) return [];
    const end = closing(raw, at + name.length);
    const method = name.replace(/[.(]/g, '');
    if (!NARROWING.has(method)) found.push({ method, inside: raw.slice(at + name.length, end) });
    at = end + 1;
  }
  return found;
}

const NARROWING = new Set(['first', 'last', 'nth', 'filter', 'and', 'or', 'describe']);

/** Position of the parenthesis that closes the call; texts and patterns may hold others. */
function closing(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const char = text[at]!;
    if (char === '\'' || char === '"' || char === '`') at = endOfQuoted(text, at);
    else if (char === '(') depth++;
    else if (char === ')' && --depth === 0) return at;
  }
  return text.length;
}

function endOfQuoted(text: string, from: number): number {
  const quote = text[from];
  let at = from + 1;
  while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1;
  return at;
}

function argumentsOf(inside: string): unknown[] {
  const options = /\{(.*)\}\s*$/s.exec(inside);
  const plain = inside.slice(0, options?.index ?? inside.length).replace(/,\s*$/, '').trim();
  const values = plain === '' ? [] : [valueOf(plain)];
  return options ? [...values, optionsOf(options[1]!)] : values;
}

function optionsOf(text: string): Record<string, unknown> {
  const pairs = [...text.matchAll(/(\w+):\s*('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\/(?:\\.|[^/\\])+\/\w*|[\w.]+)/g)];
  return Object.fromEntries(pairs.map(([, name, value]) => [name!, valueOf(value!)]));
}

function valueOf(text: string): unknown {
  if (/^(['"`]).*\1$/s.test(text)) return text.slice(1, -1).replace(/\\(.)/gs, (_, char: string) => (char === 'n' ? '\n' : char));
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
