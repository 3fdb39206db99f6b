import { writeFileSync } from 'node:fs';
import { test } from '@playwright/test';

test('goes on', async ({}, { retry }) => {
  if (retry === 0) throw new Error('once more');
  console.log('x'.repeat(30_000));
  writeFileSync('goes-on', '');
  await new Promise(() => {});
});
