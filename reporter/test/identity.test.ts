import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import type { FullConfig } from '@playwright/test/reporter';
import { instanceId } from '../src/identity';
import { resolveSettings } from '../src/options';
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
  assert.ok(wrong.problem && !wrong.problem.includes('secret'));
});

test('an API key is preferred to a password', () => {
  assert.deepEqual(
    resolveSettings({ username: 'u', password: 'p' }, { SERVICE_API_KEY: 'pd_1' }).credentials, { kind: 'key', apiKey: 'pd_1' });
});
