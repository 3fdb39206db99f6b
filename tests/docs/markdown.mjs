// What the checks of the documents read of Markdown: fences, headings, links and directives.

import { readFileSync } from 'node:fs';

const FENCE = /^(\s*)(`{3,}|~{3,})(.*)$/;

// The lines of a file as `{number, text, isCode}`; fences themselves count as code.
export function linesOf(file) {
  let open;
  return readFileSync(file, 'utf8').split('\n').map((text, index) => {
    const fence = FENCE.exec(text);
    const isCode = open !== undefined || fence !== null;
    if (fence && open === undefined) open = fence[2];
    else if (fence && fence[2].startsWith(open) && fence[3].trim() === '') open = undefined;
    return { number: index + 1, text, isCode };
  });
}

// Prose without code spans, addresses of links and comments.
export function proseOf(file) {
  return linesOf(file).filter((line) => !line.isCode).map(({ number, text }) => ({
    number,
    text: text.replace(/`[^`]*`/g, '').replace(/\]\([^)]*\)/g, ']').replace(/<[^>]*>/g, ''),
  }));
}

// Anchors of headings as GitHub makes them.
export function anchorsOf(file) {
  const seen = new Map();
  const headings = linesOf(file).filter((line) => !line.isCode).map((line) => /^#{1,6}\s+(.*?)\s*#*$/.exec(line.text)?.[1]);
  return new Set(headings.filter((heading) => heading !== undefined).map((heading) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
    const anchor = text.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  }));
}

// Links and pictures as `{number, target}`.
export function linksOf(file) {
  return linesOf(file).filter((line) => !line.isCode).flatMap(({ number, text }) =>
    [...text.replace(/`[^`]*`/g, '').matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)].map((found) => ({ number, target: found[1] })));
}

// Directives with the code that follows them: `<!-- run exit=1 expect="…" -->` before a fence, `<!-- service: stop -->` alone,
// `<!-- check command="…" expect="…" -->` for what the reader does not see.
export function directivesOf(file) {
  const lines = linesOf(file);
  return lines.flatMap(({ number, text, isCode }, index) => {
    const found = isCode ? null : /^\s*<!--\s*(run|check|packed-reporter|service:\s*\w+|file:\s*[\w.-]+)(.*?)-->\s*$/.exec(text);
    if (!found) return [];
    const options = Object.fromEntries(
      [...found[2].matchAll(/(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)].map(([, key, quoted, plain]) =>
        [key, quoted === undefined ? plain : quoted.replaceAll('\\"', '"')]),
    );
    if (found[1] === 'check') return [{ number, kind: 'check', options, code: options.command }];
    const rest = lines.slice(index + 1);
    const end = rest.findIndex((line, at) => at > 0 && FENCE.test(line.text));
    const code = FENCE.test(rest[0]?.text ?? '') ? rest.slice(1, end).map((line) => line.text) : undefined;
    const indent = Math.min(...(code ?? []).filter((line) => line.trim() !== '').map((line) => /^ */.exec(line)[0].length));
    return [{
      number, kind: found[1].replace(/:\s*/, ':'), options,
      code: code?.map((line) => line.slice(Number.isFinite(indent) ? indent : 0)).join('\n'),
    }];
  });
}
