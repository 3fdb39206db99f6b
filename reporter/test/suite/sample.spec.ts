import { writeFileSync } from 'node:fs';
import { expect, test } from '@playwright/test';

test('prints and steps', { tag: '@fast', annotation: { type: 'link', description: 'https://example.com/1' } }, async () => {
  await test.step('outer', async () => {
    await test.step('inner', async () => {});
  });
  console.log('hello from the test');
});

test.describe('Files', () => {
  test('fails once, with files', async ({}, testInfo) => {
    const trace = testInfo.outputPath('trace.zip');
    writeFileSync(trace, `trace of attempt ${testInfo.retry}`);
    await testInfo.attach('trace', { path: trace, contentType: 'application/zip' });
    await testInfo.attach('note', { body: `note ${testInfo.retry}`, contentType: 'text/plain' });
    await testInfo.attach('callboard-console', { body: CONSOLE, contentType: 'application/json' });
    expect(testInfo.retry).toBe(1);
  });
});

test.describe('Order', () => {
  test.describe.configure({ mode: 'serial', retries: 0 });

  test('breaks', () => {
    expect('left').toBe('right');
  });

  test('comes after', () => {});
});

test.skip('is skipped', () => {});

test('fails as expected', () => {
  test.fail();
  expect(1).toBe(2);
});

test('hangs', async () => {
  test.setTimeout(600);
  await test.step('waits for nothing', () => new Promise(() => {}));
});

const CONSOLE = '[{"type":"error","text":"oh","timestamp":1,"location":null}]';
