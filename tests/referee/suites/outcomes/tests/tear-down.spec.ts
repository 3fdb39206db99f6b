import { test } from '@playwright/test';

test('closes the shop', () => {});
test('counts the money', () => {
  throw new Error('the till is empty');
});
