import { existsSync } from 'node:fs';
import { test } from '@playwright/test';

test('fails', async () => {
  while (!existsSync('goes-on')) await new Promise((resolve) => setTimeout(resolve, 20));
  throw new Error('no');
});

test('comes after', () => {});

test.skip('is skipped, if it has its turn', () => {});
