import { expect, test as base } from '@playwright/test';
import { waitsAt } from './waits';

const test = base.extend<{ cart: string }, { shop: string }>({
  shop: [async ({}, use) => {
    await waitsAt('worker fixture');
    await use('open');
    await waitsAt('worker teardown');
  }, { scope: 'worker' }],
  cart: async ({}, use) => {
    await waitsAt('fixture');
    await use('full');
    await waitsAt('fixture teardown');
  },
});

test.beforeAll(() => waitsAt('before all'));
test.afterAll(() => waitsAt('after all'));

test('passes', () => {});

test('fails', () => {
  expect('left').toBe('right');
});

test('is cut off', async ({ shop, cart }, { retry }) => {
  await waitsAt('test');
  if (process.env['CUT_OFF'] === 'retry') expect(retry).toBe(1);
  await test.step('pays', () => waitsAt('retry'));
  expect([shop, cart]).toEqual(['open', 'full']);
});

test.skip('is skipped', () => {});

test('comes after', () => {});
