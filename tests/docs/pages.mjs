// What can be said about the documents without running anything: links lead somewhere, words are the agreed ones, and
// names, paths and log lines are those of the code.
//   node --test tests/docs/pages.mjs

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { differences } from '../../scripts/reference.mjs';
import { anchorsOf, linesOf, linksOf, proseOf } from './markdown.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const inside = (folder, extension) => readdirSync(path.join(root, folder), { recursive: true })
  .map((name) => path.posix.join(folder, name.split(path.sep).join('/')))
  .filter((name) => name.endsWith(extension) && !name.includes('node_modules'));

const documents = [
  'README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', 'reporter/README.md',
  ...inside('docs', '.md'), ...inside('.github', '.md'),
].sort();
const withTemplates = [...documents, ...inside('.github', '.yml')];

test('every link leads to a file, and every anchor to a heading', () => {
  const broken = documents.flatMap((page) => linksOf(path.join(root, page)).flatMap(({ number, target }) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [name, anchor] = target.split('#');
    const file = name === '' ? page : path.posix.join(path.posix.dirname(page), name);
    const full = path.join(root, file);
    if (!existsSync(full)) return [`${page}:${number}: there is no ${file}`];
    if (anchor === undefined || !file.endsWith('.md')) return [];
    return anchorsOf(full).has(anchor) ? [] : [`${page}:${number}: ${file} has no heading #${anchor}`];
  }));
  assert.deepEqual(broken, []);
});

test('every page is reachable from the index', () => {
  const seen = new Set();
  const follow = (page) => {
    if (seen.has(page)) return;
    seen.add(page);
    for (const { target } of linksOf(path.join(root, page))) {
      const name = target.split('#')[0];
      if (/^[a-z]+:/.test(target) || !name.endsWith('.md')) continue;
      follow(path.posix.join(path.posix.dirname(page), name));
    }
  };
  follow('docs/README.md');
  assert.deepEqual(inside('docs', '.md').filter((page) => !seen.has(page)), []);
});

// Pictures where the field has a term, as far as a machine can find them; and spellings other than the British ones.
const BANNED = [
  /\btold\b/i, /\b(?:is|are|be|been|was|were) worked in(to)?\b/i, /\bway there and back\b/i, /\blet(s|ting)? go\b/i, /\bat once\b/i, /\banew\b/i, /\bfor ever\b/i,
  /\bset(ting)? aside\b(?! mode)/i, /\bput off\b/i, /\blook(s|ed)? after\b/i, /\bso many\b/i, /\blately\b/i, /\bas ever\b/i, /\bby chance\b/i,
  /\bturned (away|down)\b/i, /\bgiven out\b/i, /\bdated anew\b/i, /\bgoes? unheard\b/i, /\bin line\b/i, /\bsign of life\b/i,
  /\bwho (asks|has|looks)\b/i, /\bwhat is (kept|known|stored) (of|is)\b/i, /\bin one go\b/i, /\bmend(ed|s)?\b/i,
  /\d %/, /\b(behavior|color|canceled|labeled|favorite|analyze[sd]?|center|license)\b/i,
];

test('the documents use the words of the field', () => {
  const found = documents.flatMap((page) => proseOf(path.join(root, page)).flatMap(({ number, text }) =>
    BANNED.filter((banned) => banned.test(text)).map((banned) => `${page}:${number}: ${banned.exec(text)[0]}`)));
  assert.deepEqual(found, []);
});

test('the templates of pages use the words of the field', () => {
  const templates = inside('functions', '.html');
  assert.ok(templates.length > 50, 'the templates are not found');
  const blank = (match) => match.replace(/[^\n]/g, '');
  const found = templates.flatMap((file) => {
    // What people read: neither tags nor expressions nor comments; lines stay where they are.
    const text = readFileSync(path.join(root, file), 'utf8')
      .replace(/\{#[\s\S]*?#\}|\{%[\s\S]*?%\}|\{\{[\s\S]*?\}\}/g, blank)
      .replace(/<!--[\s\S]*?-->|<(script|style)[\s\S]*?<\/\1>|<[^<>]*>/g, blank);
    return text.split('\n').flatMap((line, index) =>
      BANNED.filter((banned) => banned.test(line)).map((banned) => `${file}:${index + 1}: ${banned.exec(line)[0]}`));
  });
  assert.deepEqual(found, []);
});

test('sentences are short', () => {
  const MAX_WORDS = 45;
  const found = documents.filter((page) => page !== 'CHANGELOG.md').flatMap((page) => proseOf(path.join(root, page)).flatMap(({ number, text }) =>
    text.split(/\||(?<=[.!?:;])\s/).map((sentence) => sentence.trim().split(/\s+/).length)
      .filter((words) => words > MAX_WORDS).map((words) => `${page}:${number}: a sentence of ${words} words`)));
  assert.deepEqual(found, []);
});

test('the reference lists the settings, error codes, commands and options of the code', () => {
  assert.deepEqual(differences(), []);
});

test('paths of the repository exist', () => {
  const areas = /^(?:docs|functions|infra|local-runner|migrations|reporter|scripts|shared|tests)\/[\w./-]+$/;
  const found = documents.flatMap((page) => linesOf(path.join(root, page)).filter((line) => !line.isCode).flatMap(({ number, text }) =>
    [...text.matchAll(/`([^`\s]+)`/g)].map((span) => span[1]).filter((span) => areas.test(span) && !span.includes('NNNN'))
      .filter((span) => !existsSync(path.join(root, span)))
      .map((span) => `${page}:${number}: there is no ${span}`)));
  assert.deepEqual(found, []);
});

test('files that the architecture names by their crate exist', () => {
  const names = new Set(['functions', 'shared', 'local-runner', 'tests'].flatMap((folder) => inside(folder, '.rs')).map((file) => path.posix.basename(file)));
  const found = inside('docs/dev', '.md').flatMap((page) => linesOf(path.join(root, page)).filter((line) => !line.isCode).flatMap(({ number, text }) =>
    [...text.matchAll(/`([\w/]*\w+\.rs)`/g)].map((span) => path.posix.basename(span[1])).filter((name) => !names.has(name))
      .map((name) => `${page}:${number}: there is no ${name}`)));
  assert.deepEqual(found, []);
});

test('crates depend only on those above them in the architecture', () => {
  const rows = [...readFileSync(path.join(root, 'docs/dev/ARCHITECTURE.md'), 'utf8').matchAll(/^\| `shared\/([a-z]+)` \|.*\|.*\|$/gm)]
    .map((found) => found[1]);
  assert.deepEqual([...rows].sort(), readdirSync(path.join(root, 'shared')).sort(), 'crates of the table');
  let seen = 0;
  const found = rows.flatMap((crate, index) => {
    const manifest = readFileSync(path.join(root, 'shared', crate, 'Cargo.toml'), 'utf8');
    const dependencies = /^\[dependencies\]$([\s\S]*?)(?=^\[|$(?![\s\S]))/m.exec(manifest)?.[1] ?? '';
    const names = [...dependencies.matchAll(/^callboard-([a-z]+)\b/gm)].map((match) => match[1]);
    seen += names.length;
    return names.filter((name) => !rows.slice(0, index).includes(name)).map((name) => `${crate} depends on ${name}`);
  });
  assert.ok(seen > 20, `only ${seen} dependencies were found`);
  assert.deepEqual(found, []);
});

test('make commands exist', () => {
  const targets = new Set([...readFileSync(path.join(root, 'Makefile'), 'utf8').matchAll(/^([a-z-]+):/gm)].map((found) => found[1]));
  const found = withTemplates.flatMap((page) => readFileSync(path.join(root, page), 'utf8').split('\n').flatMap((text, index) =>
    [...text.matchAll(/(?:`|^\s*|run: )make ([a-z-]+)/g)].filter((span) => !targets.has(span[1])).map((span) => `${page}:${index + 1}: make ${span[1]}`)));
  assert.deepEqual(found, []);
});

test('the runbook quotes messages that the code has', () => {
  const page = 'docs/operate/runbook.md';
  const sources = ['functions', 'shared', 'local-runner'].flatMap((folder) => inside(folder, '.rs'))
    // A message may be broken over lines.
    .map((file) => readFileSync(path.join(root, file), 'utf8').replace(/\\\n\s*/g, '')).join('\n');
  const lines = readFileSync(path.join(root, page), 'utf8').split('\n');
  const quoted = lines.map((line) => /^\| `([^`]+)` \|/.exec(line)?.[1]).filter((text) => text?.includes(' ') || text === 'given up');
  assert.ok(quoted.length > 10, 'the tables of the runbook are not found');
  assert.deepEqual(quoted.filter((text) => !sources.includes(text)), []);
});

test('nothing names a place that only we have', () => {
  const found = withTemplates.filter((page) => statSync(path.join(root, page)).isFile()).flatMap((page) =>
    readFileSync(path.join(root, page), 'utf8').split('\n').flatMap((text, index) =>
      /\/work\/|\/tmp\/[a-z]|\bissue #?\d+\b/.test(text) ? [`${page}:${index + 1}`] : []));
  assert.deepEqual(found, []);
});
