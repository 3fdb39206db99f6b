import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import type { RunFields } from '../src/run';
import { installedSuite, playwright } from './playwright-run';
import { startService } from './service';

const CONFIG = `const { defineConfig } = require('@playwright/test');
module.exports = defineConfig({ testMatch: 'focus.spec.ts', reporter: [['callboard-reporter', {}]] });`;

/** The run of a suite that has these lines among tests without focus. */
async function runOf(...lines: string[]): Promise<RunFields> {
  const service = await startService();
  const dir = installedSuite('commonjs');
  writeFileSync(path.join(dir, 'focus.config.cjs'), CONFIG);
  writeFileSync(path.join(dir, 'focus.spec.ts'), [
    "import { test } from '@playwright/test';",
    "test('one', () => {});",
    "test.describe('group', () => { test('two', () => {}); });",
    ...lines,
  ].join('\n'));
  const { exitCode, stdout } = await playwright(dir, ['-c', 'focus.config.cjs'], { SERVICE_URL: service.url, SERVICE_STREAMING: 'false' });
  await service.close();
  assert.equal(exitCode, 0, stdout);
  return service.received[0]!.json as unknown as RunFields;
}

test('a suite without focus is a full run', async () => {
  const { isFullRun, filterDetails, totalTests } = await runOf("test('three', () => {});");
  assert.deepEqual({ isFullRun, filterDetails, totalTests }, { isFullRun: true, filterDetails: null, totalTests: 3 });
});

test('a run of focused tests or suites is partial', async () => {
  for (const focused of ["test.only('three', () => {});", "test.describe.only('three', () => { test('four', () => {}); });"]) {
    const { isFullRun, filterDetails, totalTests } = await runOf(focused);
    assert.deepEqual({ isFullRun, filterDetails, totalTests }, { isFullRun: false, filterDetails: { only: true }, totalTests: 1 }, focused);
  }
});
