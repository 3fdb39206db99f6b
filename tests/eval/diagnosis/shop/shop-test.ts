/** Playwright's `test` with a shop of its own for every test, and everything captured. */
import { test as base } from '@playwright/test';
import { extendCallboard } from 'callboard-reporter';
import { startShop, type Difference } from './server.ts';

export const PRODUCTS = ['Teapot', 'Cup', 'Kettle', 'Lamp', 'Chair', 'Desk', 'Plate', 'Bowl', 'Fork', 'Spoon', 'Knife', 'Vase', 'Clock', 'Mirror'];

type Lookup = (title: string, retry: number) => Difference | undefined;
// Which differences there are is known outside of this folder: nothing that is stored about a test may name them.
const differences = process.env['EVAL_DIFFERENCES'];
const lookup: Lookup = differences ? ((await import(differences)) as { differenceOf: Lookup }).differenceOf : () => undefined;

export const test = extendCallboard(base).extend<{ shopUrl: string }>({
  shopUrl: [async ({}, use, { title, retry }) => {
    const shop = await startShop(lookup(title, retry));
    await use(shop.url);
    await shop.stop();
  }, { box: true }],
  baseURL: [async ({ shopUrl }, use) => use(shopUrl), { scope: 'test', box: true }],
});

export { expect } from '@playwright/test';
