/**
 * Playwright's `test` with the shop running and set as the base address, and everything captured: by our fixtures, or
 * by those of the published reporter that `PUBLISHED_REPORTER` names.
 */
import { test as base } from '@playwright/test';
import { extendCallboard } from 'callboard-reporter';
import { startShop } from './server';

const published = process.env['PUBLISHED_REPORTER'];
const capture: typeof extendCallboard = published ? (await import(published)).extendPiwiFixtures : extendCallboard;

export const test = capture(base).extend<object, { shopUrl: string }>({
  shopUrl: [async ({}, use) => {
    const shop = await startShop();
    await use(shop.url);
    await shop.stop();
  }, { scope: 'worker' }],
  baseURL: ({ shopUrl }, use) => use(shopUrl),
});

export { expect } from '@playwright/test';
