/**
 * `init`: writes the line of the reporter into the Playwright configuration, and takes it
 * out again when the configuration cannot be read with it.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { addReporter, REPORTER_NAME } from './config-edit';

export interface InitOptions {
  dir: string;
  url: string | undefined;
  project: string | undefined;
  print(line: string): void;
}

const CONFIG_FILES = ['ts', 'js', 'mts', 'mjs', 'cts', 'cjs'].map((extension) => `playwright.config.${extension}`);
const LIST_TIMEOUT_MS = 120_000;

/** The exit code: 0 when the configuration has the reporter in the end. */
export async function initCommand({ dir, url, project, print }: InitOptions): Promise<number> {
  const options = [
    ...(url === undefined ? [] : [`serverUrl: ${quoted(url)}`]),
    ...(project === undefined ? [] : [`projectName: ${quoted(project)}`]),
  ];
  const entry = options.length === 0 ? `['${REPORTER_NAME}']` : `['${REPORTER_NAME}', { ${options.join(', ')} }]`;
  const file = CONFIG_FILES.map((name) => path.join(dir, name)).find((each) => read(each) !== undefined);
  if (file === undefined) {
    print(`no playwright.config file in ${dir}; run this in the folder of the configuration`);
    return 1;
  }
  if (url !== undefined && !isAddress(url)) {
    print(`--url must be an http or https address, got "${url}"`);
    return 2;
  }
  const name = path.basename(file);
  const before = read(file)!;
  const edit = addReporter(before, entry);
  if (edit.kind === 'present') {
    print(`${name} has the reporter already, nothing was changed`);
    return 0;
  }
  const byHand = `add this to the reporters in ${name}: ${entry}`;
  if (edit.kind === 'unclear') {
    print(`${name} was not changed: ${edit.reason}; ${byHand}`);
    return 1;
  }
  if (!isInstalled(dir)) {
    print(`${name} was not changed: ${REPORTER_NAME} is not installed here, run: npm install --save-dev ${REPORTER_NAME}`);
    return 1;
  }
  writeFileSync(file, edit.text);
  const problem = await problemOf(dir, file);
  if (problem !== undefined) {
    writeFileSync(file, before);
    const wasFine = await problemOf(dir, file) === undefined;
    print(wasFine
      ? `${name} was not changed: with the reporter Playwright says "${problem}"; ${byHand}`
      : `${name} was not changed: Playwright cannot read it, it says "${problem}"`);
    return 1;
  }
  for (const line of changes(before, edit.text)) print(line);
  print(`changed ${name}`);
  if (url === undefined) print('now set SERVICE_URL to the address of the service; until then the reporter stays off');
  return 0;
}

function changes(before: string, after: string): string[] {
  const old = new Set(before.split('\n'));
  const kept = new Set(after.split('\n'));
  return [
    ...before.split('\n').filter((line) => !kept.has(line)).map((line) => `- ${line}`),
    ...after.split('\n').filter((line) => !old.has(line)).map((line) => `+ ${line}`),
  ];
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

function isAddress(text: string): boolean {
  try {
    return /^https?:$/.test(new URL(text).protocol);
  } catch {
    return false;
  }
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function isInstalled(dir: string): boolean {
  return resolved(dir, REPORTER_NAME) !== undefined;
}

/** What Playwright says when it cannot read the configuration; a suite without tests is no problem. */
async function problemOf(dir: string, file: string): Promise<string | undefined> {
  const manifest = resolved(dir, '@playwright/test/package.json');
  if (manifest === undefined) return undefined;
  const args = [path.join(path.dirname(manifest), 'cli.js'), 'test', '--list', '-c', file];
  const output = await new Promise<string | undefined>((resolve) => {
    execFile(process.execPath, args, { cwd: dir, timeout: LIST_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve(error ? `${stderr}\n${stdout}` : undefined));
  });
  if (output === undefined || /^Error: No tests found/m.test(output)) return undefined;
  return output.trim().split('\n', 1)[0] ?? 'nothing';
}

function resolved(dir: string, request: string): string | undefined {
  try {
    return createRequire(path.join(dir, 'resolve.js')).resolve(request);
  } catch {
    return undefined;
  }
}
