import { writeFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';

test('leaves files and recovers', async ({}, testInfo) => {
  const trace = testInfo.outputPath('trace.zip');
  writeFileSync(trace, `trace of attempt ${testInfo.retry}`);
  await testInfo.attach('trace', { path: trace, contentType: 'application/zip' });
  await testInfo.attach('note', { body: `note of attempt ${testInfo.retry}`, contentType: 'text/plain' });
  await test.step('looks closely', () => new Promise((resolve) => setTimeout(resolve, 200)));
  expect(testInfo.retry).toBe(1);
});

test('leaves a note', async ({}, testInfo) => {
  await testInfo.attach('note', { body: 'all is well', contentType: 'text/plain' });
  await new Promise((resolve) => setTimeout(resolve, 200));
});

test('goes wrong', () => {
  expect('left').toBe('right');
});

test.skip('is left out', () => {});

test('takes its time', async () => {
  await new Promise((resolve) => setTimeout(resolve, Number(process.env['COUNTING_PAUSE_MS'] ?? 300)));
});
