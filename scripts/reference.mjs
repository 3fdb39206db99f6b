// Checks that the reference lists what the code has: every setting of `shared/platform/src/config`, every error code
// of the sources and of `infra/openapi.json`, every command of `callboard`, every option of the reporter. Prints what
// is missing or unknown.
//   node scripts/reference.mjs

import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const read = (file) => readFileSync(path.join(root, file), 'utf8');
const sources = (folder) => readdirSync(path.join(root, folder), { recursive: true })
  .map((name) => path.join(folder, name)).filter((name) => name.endsWith('.rs') && name.includes('src'));
const all = (text, pattern) => [...text.matchAll(pattern)].map((found) => found[1]);

// The names of settings. Those of the caps on evidence are declared beside the code that applies them.
export function settings() {
  const files = [...sources('shared/platform/src/config'), 'shared/domain/src/ingest/caps.rs'];
  const names = files.flatMap((file) => all(read(file).split('#[cfg(test)]')[0], /"(SERVICE_[A-Z0-9_]+)"/g));
  // Beginnings of names that the providers of sign-in share are no settings.
  return new Set(names.filter((name) => !/OAUTH_(IDP|CODEHOST)$/.test(name)));
}

// The codes of errors with their statuses, as far as the API document says them.
export function errorCodes() {
  const codes = new Map();
  const add = (code, status) => {
    if (!codes.has(code)) codes.set(code, new Set());
    if (status !== undefined) codes.get(code).add(status);
  };
  const api = JSON.parse(read('infra/openapi.json'));
  for (const operations of Object.values(api.paths)) {
    for (const operation of Object.values(operations)) {
      for (const [status, response] of Object.entries(operation.responses ?? {})) {
        if (!/^[45]/.test(status)) continue;
        const named = response.$ref ? api.components.responses[response.$ref.split('/').at(-1)] : response;
        for (const code of all(named.description, /`([a-z]+(?:_[a-z]+)+)`/g)) add(code, Number(status));
      }
    }
  }
  for (const file of [...sources('shared'), ...sources('functions')]) {
    const text = read(file).split('#[cfg(test)]')[0];
    for (const code of all(text, /\b(?:bad_request|unavailable)\(\s*"([a-z_]+)"/g)) add(code);
    for (const code of all(text, /\b(?:Self|ApiError)::new\(\s*(?:http::)?StatusCode::[A-Z_]+,\s*"([a-z_]+)"/g)) add(code);
    for (const body of text.matchAll(/fn code\(&?self\)[^{]*\{([\s\S]*?)\n {4}\}/g)) {
      for (const code of all(body[1], /=>\s*"([a-z_]+)"/g)) add(code);
    }
  }
  return codes;
}

// The commands of the service, as clap spells them.
export function commands() {
  const body = /enum Command \{([\s\S]*?)\n\}/.exec(read('local-runner/src/main.rs'))[1];
  const names = all(body, /^ {4}([A-Z][A-Za-z]+)\b/gm);
  return new Set(names.map((name) => name.replace(/(?!^)([A-Z])/g, '-$1').toLowerCase()));
}

// Options and variables of the reporter.
export function reporterOptions() {
  const source = read('reporter/src/options.ts');
  const body = /export interface CallboardReporterOptions \{([\s\S]*?)\n\}/.exec(source)[1];
  return {
    options: new Set(all(body, /^ {2}([a-zA-Z]+)\??:/gm)),
    // `SERVICE_CAPTURE` is set by the reporter itself, for its fixtures in Playwright's workers.
    variables: new Set(all(source, /'(SERVICE_[A-Z_]+)'/g).filter((name) => name !== 'SERVICE_CAPTURE')),
  };
}

function firstCells(page) {
  return new Set(all(read(page), /^\| `([^`]+)` \|/gm));
}

// One sentence for each name that is missing from a page, or that the code does not have.
export function differences() {
  const found = [];
  const compare = (page, what, expected, listed) => {
    for (const name of expected) if (!listed.has(name)) found.push(`${page}: ${what} ${name} is missing`);
    for (const name of listed) if (!expected.has(name)) found.push(`${page}: ${what} ${name} does not exist`);
  };
  compare('docs/reference/configuration.md', 'setting', settings(), firstCells('docs/reference/configuration.md'));
  const codes = errorCodes();
  const errors = 'docs/reference/errors.md';
  compare(errors, 'code', new Set(codes.keys()), firstCells(errors));
  for (const [, code, written] of read(errors).matchAll(/^\| `([a-z_]+)` \| ([0-9, ]+) \|/gm)) {
    const listed = written.split(',').map(Number);
    for (const status of codes.get(code) ?? []) {
      if (!listed.includes(status)) found.push(`${errors}: ${code} is answered with ${status} too`);
    }
  }
  const reporter = 'reporter/README.md';
  const { options, variables } = reporterOptions();
  const rows = all(/## Options([\s\S]*?)\n## /.exec(read(reporter))[1], /^\| (`[^|]+\|[^|]+\|)/gm).join('\n');
  compare(reporter, 'option', options, new Set(all(rows, /`([a-z][a-zA-Z]+)`/g)));
  compare(reporter, 'variable', variables, new Set(all(rows, /`(SERVICE_[A-Z_]+)`/g)));
  const cli = 'docs/reference/cli.md';
  compare(cli, 'command', new Set([...commands()].map((name) => `callboard ${name}`)),
    new Set([...firstCells(cli)].filter((name) => name.startsWith('callboard ')).map((name) => name.split(' ').slice(0, 2).join(' '))));
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = differences();
  for (const line of found) process.stdout.write(`${line}\n`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
