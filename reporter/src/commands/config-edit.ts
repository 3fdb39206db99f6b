/**
 * Adds one reporter to the text of a Playwright configuration. Only what is certain is
 * edited: a `reporter` written as a string or as a list in the configuration object, or
 * none at all. Everything else is left to a person.
 */
export type ConfigEdit =
  | { kind: 'edited'; text: string }
  | { kind: 'present' }
  | { kind: 'unclear'; reason: string };

export const REPORTER_NAME = 'callboard-reporter';

export function addReporter(text: string, entry: string): ConfigEdit {
  const code = masked(text);
  if (new RegExp(`(['"])${REPORTER_NAME}\\1`).test(withoutComments(text))) return { kind: 'present' };
  const open = configurationStart(code);
  const close = open === undefined ? undefined : matching(code, open);
  if (open === undefined || close === undefined) return { kind: 'unclear', reason: 'no configuration object was found' };
  const keys = keysOf(code, open, close);
  const reporter = keys.find(({ name }) => name === 'reporter');
  if (!reporter) {
    return keys.some(({ name }) => name === '...')
      ? { kind: 'unclear', reason: 'the configuration takes settings from another object, which may set reporters' }
      : { kind: 'edited', text: withNewKey(text, code, open, entry) };
  }
  const value = text.slice(reporter.from, reporter.to).trimEnd();
  const from = reporter.from + (value.length - value.trimStart().length);
  const to = reporter.from + value.length;
  if (/^(['"])[^'"`\\]*\1$/.test(text.slice(from, to))) {
    return { kind: 'edited', text: `${text.slice(0, from)}[[${text.slice(from, to)}], ${entry}]${text.slice(to)}` };
  }
  if (code[from] === '[' && matching(code, from) === to - 1) {
    return { kind: 'edited', text: withNewItem(text, code, from, to - 1, entry) };
  }
  return { kind: 'unclear', reason: 'the reporters are not written as a string or a list' };
}

/** Comments, texts and regular expressions blanked out, so that only code is looked at. Same length. */
function masked(text: string): string {
  return text.replace(LITERAL, blank);
}

function withoutComments(text: string): string {
  return text.replace(LITERAL, (found) => (/^\/[/*]/.test(found) ? blank(found) : found));
}

const LITERAL = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[(,=:[!&|?{};]\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g;

function blank(found: string): string {
  return found.replace(/[^\n]/g, ' ');
}

function configurationStart(code: string): number | undefined {
  const found = /\bdefineConfig\s*(?:<[^>]*>)?\s*\(\s*\{/.exec(code)
    ?? /\bexport\s+default\s*\{/.exec(code)
    ?? /\bmodule\.exports\s*=\s*\{/.exec(code)
    ?? /\bconst\s+\w*[cC]onfig\w*\s*(?::\s*\w+\s*)?=\s*\{/.exec(code);
  return found ? found.index + found[0].length - 1 : undefined;
}

function matching(code: string, open: number): number | undefined {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    if ('([{'.includes(code[at]!)) depth++;
    else if (')]}'.includes(code[at]!) && --depth === 0) return at;
  }
  return undefined;
}

interface Key {
  name: string;
  /** Where the value begins and ends. */
  from: number;
  to: number;
}

function keysOf(code: string, open: number, close: number): Key[] {
  const keys: Key[] = [];
  for (let at = open + 1; at < close;) {
    const end = endOfItem(code, at, close);
    const item = code.slice(at, end);
    const named = /^\s*([A-Za-z_$][\w$]*)\s*:/.exec(item);
    if (named) keys.push({ name: named[1]!, from: at + named[0].length, to: end });
    else if (item.trim() !== '') keys.push({ name: item.trim().startsWith('...') ? '...' : item.trim(), from: end, to: end });
    at = end + 1;
  }
  return keys;
}

/** The comma after the item that begins here, or the end of the list. */
function endOfItem(code: string, from: number, close: number): number {
  let depth = 0;
  for (let at = from; at < close; at++) {
    if ('([{'.includes(code[at]!)) depth++;
    else if (')]}'.includes(code[at]!)) depth--;
    else if (code[at] === ',' && depth === 0) return at;
  }
  return close;
}

function withNewKey(text: string, code: string, open: number, entry: string): string {
  const indent = /^[ \t]*\n([ \t]+)\S/.exec(code.slice(open + 1))?.[1];
  const key = `reporter: [['list'], ${entry}],`;
  const insertion = indent === undefined ? ` ${key}` : `\n${indent}${key}`;
  return text.slice(0, open + 1) + insertion + text.slice(open + 1);
}

function withNewItem(text: string, code: string, open: number, close: number, entry: string): string {
  const inside = code.slice(open + 1, close);
  if (inside.trim() === '') return `${text.slice(0, open + 1)}${entry}${text.slice(close)}`;
  const last = open + 1 + inside.trimEnd().length;
  const hasComma = code[last - 1] === ',';
  const indent = /\n([ \t]*)\S[^\n]*$/.exec(text.slice(0, last))?.[1];
  const isMultiline = inside.includes('\n');
  const separator = hasComma ? '' : ',';
  return isMultiline
    ? `${text.slice(0, last)}${separator}\n${indent ?? '  '}${entry}${hasComma ? ',' : ''}${text.slice(last)}`
    : `${text.slice(0, last)}${separator} ${entry}${text.slice(last)}`;
}
