import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { FullConfig } from '@playwright/test/reporter';
import { instanceId } from '../src/identity';
import { optionProblems } from '../src/option-problems';
import { resolveSettings, type CallboardReporterOptions } from '../src/options';
import { selectionOf } from '../src/selection';

const PARTS = {
  projectName: 'shop', runLabel: '42', playwrightProjects: ['b', 'a'], hostname: 'host', workingDirectory: '/w',
};
const short = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

test('processes of one pipeline share an instance id, whatever the order of their projects', () => {
  assert.equal(instanceId(PARTS), short('shop|42|a,b'));
  assert.equal(instanceId({ ...PARTS, playwrightProjects: ['a', 'b'], hostname: 'other' }), instanceId(PARTS));
});

test('without a run label the machine and folder stand for it', () => {
  assert.equal(instanceId({ ...PARTS, runLabel: undefined }), short('shop|host|/w'));
});

const select = (...args: string[]): ReturnType<typeof selectionOf> =>
  selectionOf(config(), ['node', 'playwright', 'test', ...args]);

function config(): FullConfig {
  return { grep: /.*/, grepInvert: null, projects: [{ name: 'Desk Top' }, { name: 'mobile' }] } as unknown as FullConfig;
}

test('options that do not narrow the suite leave a full run', () => {
  const { isFullRun, filterDetails, projects } = select('-c', 'e2e.config.ts', '--workers', '2', '--only-changed-not', '-x', '--update-snapshots', 'all');
  assert.deepEqual({ isFullRun, filterDetails, projects }, { isFullRun: true, filterDetails: null, projects: ['Desk Top', 'mobile'] });
});

test('every way of narrowing the suite makes a partial run', () => {
  assert.deepEqual(select('cart.spec.ts:12', '--retries=1').filterDetails, { files: ['cart.spec.ts:12'] });
  assert.deepEqual(select('-g', 'pays', '--grep-invert=@slow').filterDetails, { grep: 'pays', grepInvert: '@slow' });
  assert.deepEqual(select('--project', 'DESK*').filterDetails, { projects: ['Desk Top'] });
  assert.deepEqual(select('--last-failed').filterDetails, { lastFailed: true });
  assert.deepEqual(select('--only-changed', 'main').filterDetails, { onlyChanged: true });
  assert.equal(select('--test-list', 'tests.txt').isFullRun, false);
});

test('what is picked in UI mode, in an editor or in watch mode is a partial run', () => {
  for (const args of [['--ui'], ['--ui-port', '0'], ['--ui-host=0.0.0.0'], ['-c', 'e2e.config.ts', '--ui']]) {
    const { isFullRun, filterDetails } = select(...args);
    assert.deepEqual({ isFullRun, filterDetails }, { isFullRun: false, filterDetails: null }, args.join(' '));
  }
  const isFull = (command: string, env = {}): boolean => selectionOf(config(), ['node', 'playwright', command], env).isFullRun;
  assert.equal(isFull('test'), true);
  assert.equal(isFull('test-server'), false);
  assert.equal(isFull('test', { PWTEST_WATCH: '1' }), false);
});

test('a merge is as full as the names of its blobs tell', () => {
  const merged = (names: string[], tags: string[] = []): boolean => {
    const dir = mkdtempSync(path.join(tmpdir(), 'callboard-blobs-'));
    for (const name of names) writeFileSync(path.join(dir, name), '');
    return selectionOf({ ...config(), tags }, ['node', 'playwright', 'merge-reports', '-c', 'merge.config.ts', dir], {}).isFullRun;
  };
  assert.equal(merged(['report-1.zip', 'report-2.zip']), true);
  assert.equal(merged(['report-chromium-1.zip', 'mine.zip']), true);
  assert.equal(merged(['report-3f2a91c-1.zip', 'report-3f2a91c-2.zip']), false);
  assert.equal(merged(['report.zip', 'report-chromium-3f2a91c.zip']), false);
  assert.equal(merged(['report-3f2a91c-1.zip'], ['@nightly']), true, 'the hash may be that of the tags');
});

test('naming every project is still a full run', () => {
  assert.equal(select('--project=mobile', '--project=desk top').isFullRun, true);
});

test('an option wins over the environment, and the environment over the default', () => {
  const env = { SERVICE_URL: 'http://env.example/base?x=1', SERVICE_UPLOAD_TRACES: 'yes', SERVICE_FINALIZE_TIMEOUT: '5000' };
  assert.equal(resolveSettings({}, env).origin, 'http://env.example');
  assert.equal(resolveSettings({ serverUrl: 'https://option.example' }, env).origin, 'https://option.example');
  assert.equal(resolveSettings({}, env).uploadTraces, false);
  assert.equal(resolveSettings({ uploadTraces: true }, env).uploadTraces, true);
  assert.equal(resolveSettings({}, env).finalizeTimeoutMs, 5_000);
  assert.equal(resolveSettings({}, {}).finalizeTimeoutMs, 120_000);
});

test('the reporter is off without an address, when disabled, and with an address that is none', () => {
  assert.equal(resolveSettings({ enabled: true }, {}).origin, undefined);
  assert.equal(resolveSettings({ enabled: false, serverUrl: 'http://a.example' }, {}).origin, undefined);
  assert.equal(resolveSettings({}, { SERVICE_URL: 'http://a.example', SERVICE_REPORTER_ENABLED: 'false' }).origin, undefined);
  const wrong = resolveSettings({ serverUrl: 'user:secret@host' }, {});
  assert.equal(wrong.origin, undefined);
  assert.match(wrong.problem ?? '', /^serverUrl must be .*, got "host"$/);
  assert.equal(resolveSettings({}, { SERVICE_URL: 'user:se@cr@et@host' }).problem, 'SERVICE_URL must be an http or https address, got "host"');
});

test('an API key is preferred to a password', () => {
  assert.deepEqual(
    resolveSettings({ username: 'u', password: 'p' }, { SERVICE_API_KEY: 'pd_1' }).credentials, { kind: 'key', apiKey: 'pd_1' });
});

test('what is wrong with an option is said by its name, and never with a secret', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const options = {
    serverURL: 'http://a.example', streamng: true, colour: 'red', streaming: 'no', finalizeTimeout: -1, apiKey: 12_345, tags: 'fast',
    customData: circular, reports: [{ type: 'html' }, { type: 'a b' }], spoolMaxBytes: '1000', label: undefined,
    configDir: '/w', _mode: 'test',
  } as unknown as CallboardReporterOptions;
  const ofPlaywright = new Set(['configDir', '_mode']);
  assert.deepEqual(optionProblems(options, new Set(Object.keys(options).filter((name) => !ofPlaywright.has(name))), { SERVICE_FINALIZE_TIMEOUT: '2m', SERVICE_SPOOL_MAX_BYTES: '5' }), [
    'there is no option "serverURL", did you mean "serverUrl"?',
    'there is no option "streamng", did you mean "streaming"?',
    'there is no option "colour"',
    'the option "streaming" must be true or false, got a string',
    'the option "finalizeTimeout" must be a number that is not negative, got -1',
    'the option "apiKey" must be a text, got a number',
    'the option "tags" must be a list of texts, got a string',
    'the option "customData" must be an object that can be written as JSON, got an object',
    'the option "reports" must be a list of { type, dir?, label? }, with types of letters, digits, _ and -, got a list',
    'SERVICE_FINALIZE_TIMEOUT must be a number that is not negative, got "2m"',
  ]);
  const fine = { serverUrl: 'http://a.example', reports: [], customData: {}, tags: [] };
  assert.deepEqual(optionProblems(fine, new Set(Object.keys(fine)), {}), []);
});

test('an option that cannot be used is left out, the others count', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const reports = [null, 'html', { type: 'json', dir: 5 }, { type: 'blob', dir: 'blobs' }];
  const settings = resolveSettings({ customData: circular, reports, finalizeTimeout: [] } as unknown as CallboardReporterOptions, {});
  assert.deepEqual([settings.customData, settings.reports, settings.finalizeTimeoutMs], [undefined, [{ type: 'blob', dir: 'blobs' }], 120_000]);
});
