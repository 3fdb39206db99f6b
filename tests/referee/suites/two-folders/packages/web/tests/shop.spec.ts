import { test } from '@playwright/test';
import { pay } from '../pages';

test.describe('shop', () => {
  test('opens', () => {});
  test('sells', async () => {
    await pay();
  });
});
