import { expect, test } from '@playwright/test';

test('passes', () => {});

test('passes at the second attempt', ({}, testInfo) => {
  expect(testInfo.retry).toBe(1);
});

test('fails', () => {
  expect('left').toBe('right');
});

test('hangs', async () => {
  test.setTimeout(300);
  await new Promise(() => {});
});

test.skip('is skipped', () => {});

test('skips itself', () => {
  test.skip(true, 'not today');
});

test('fails as expected', () => {
  test.fail();
  expect(1).toBe(2);
});

test('passes and should not', () => {
  test.fail();
});

test.describe('in order', () => {
  test.describe.configure({ mode: 'serial' });

  test('comes first', () => {});

  test('breaks the order', () => {
    expect('here').toBe('there');
  });

  test('never gets its turn', () => {});
});
