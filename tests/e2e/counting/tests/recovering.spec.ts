import { expect, test } from '@playwright/test';

test.describe.configure({ mode: 'serial' });

test('comes first', () => {});

test('works the second time', ({}, testInfo) => {
  expect(testInfo.retry).toBe(1);
});

test('could not begin the first time', () => {});
