import { test } from '@playwright/test';

test('finds its data', () => {
  throw new Error('the data is gone');
});
