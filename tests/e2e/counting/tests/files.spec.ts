import { writeFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';

test('leaves files and recovers', async ({}, testInfo) => {
  const trace = testInfo.outputPath('trace.zip');
  writeFileSync(trace, `trace of attempt ${testInfo.retry}`);
  await testInfo.attach('trace', { path: trace, contentType: 'application/zip' });
  await testInfo.attach('note', { body: `note of attempt ${testInfo.retry}`, contentType: 'text/plain' });
  // Large enough to be uploaded by themselves; a retry leaves one file again, and another one.
  const bytes = Number(process.env['COUNTING_LARGE_BYTES'] ?? 0);
  for (const [name, seed] of bytes > 0 ? [['the same', 7], ['another', 11 + testInfo.retry]] as const : []) {
    const file = testInfo.outputPath(`${name}.bin`);
    writeFileSync(file, Uint8Array.from({ length: bytes }, (_, index) => (index * seed + (index >> 8)) % 256));
    await testInfo.attach(name, { path: file, contentType: 'application/octet-stream' });
  }
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
