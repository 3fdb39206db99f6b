import { expect, test } from '@playwright/test';

test('passes', () => {});

test('fails', () => {
  expect('left').toBe('right');
});

test('hangs', async () => {
  test.setTimeout(200);
  await new Promise(() => {});
});

test.describe('tried twice', () => {
  test.describe.configure({ retries: 1, timeout: 200 });

  test('passes at the second attempt', ({}, { retry }) => {
    expect(retry).toBe(1);
  });

  test('hangs, then fails', async ({}, { retry }) => {
    if (retry === 0) await new Promise(() => {});
    expect('left').toBe('right');
  });

  test('fails, then hangs', async ({}, { retry }) => {
    if (retry === 1) await new Promise(() => {});
    throw 'a text';
  });
});
