/** Playwright's `test` with the shop running and set as the base address, and everything captured. */
import { test as base } from '@playwright/test';
import { extendCallboard } from 'callboard-reporter';
import { startShop } from './server';

export const test = extendCallboard(base).extend<object, { shopUrl: string }>({
  shopUrl: [async ({}, use) => {
    const shop = await startShop();
    await use(shop.url);
    await shop.stop();
  }, { scope: 'worker' }],
  baseURL: ({ shopUrl }, use) => use(shopUrl),
});

export { expect } from '@playwright/test';
