import { expect, test } from '@playwright/test';

test('fails as expected', () => {
  test.fail();
  expect(1).toBe(2);
});

test('fails softly, as expected', () => {
  test.fail();
  expect.soft(1).toBe(2);
});

test('passes and should not', () => {
  test.fail(true, 'known since spring');
});

test('hangs and should fail', async () => {
  test.fail();
  test.setTimeout(200);
  await new Promise(() => {});
});

test.describe('tried twice', () => {
  test.describe.configure({ retries: 1 });
  test.fail();

  test('passes and should not, then fails', ({}, { retry }) => {
    expect(retry).toBe(0);
  });
});
