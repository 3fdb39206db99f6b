import { test } from '@playwright/test';

test.describe('tried twice', () => {
  test.describe.configure({ retries: 1 });

  test('ends its worker once', ({}, { retry }) => {
    if (retry === 0) process.exit(3);
  });
});

test('kills its worker', async () => {
  process.kill(process.pid, 'SIGKILL');
  await new Promise(() => {});
});

test('comes after', () => {});

test('rejects where nobody listens', async () => {
  void Promise.reject(new Error('unheard'));
  await new Promise((resolve) => setTimeout(resolve, 50));
});

test('throws where nobody catches', async () => {
  setTimeout(() => {
    throw new Error('uncaught');
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
});

test.describe.serial('in order', () => {
  test('passes', () => {});
  test('ends its worker', () => process.exit(4));
  test('never begins', () => {});
});
