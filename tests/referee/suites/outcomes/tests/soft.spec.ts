import { expect, test } from '@playwright/test';

test('fails softly, then hard', () => {
  expect.soft(1).toBe(5);
  expect.soft(2).toBe(6);
  expect.soft(1).toBe(5);
  expect('hard').toBe('stop');
});

test('fails softly in a step', async () => {
  await test.step('looks at both', async () => {
    expect.soft('one').toBe('two');
    expect.soft('one').toBe('two');
  });
});

test('compares emoji', () => {
  expect('a 😀 b').toBe('a 😁 b');
});
