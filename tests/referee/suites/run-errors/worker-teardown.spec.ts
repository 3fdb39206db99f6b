import { test as base } from '@playwright/test';

const test = base.extend<object, { shop: number }>({
  shop: [async ({}, use) => {
    await use(1);
    throw new Error('worker teardown broke');
  }, { scope: 'worker' }],
});

test('one', ({ shop }) => void shop);
test('two', ({ shop }) => void shop);
