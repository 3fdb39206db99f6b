import { test } from '@playwright/test';

for (const number of [1, 2, 3]) {
  test(`takes a while ${number}`, async () => {
    await test.step(`waits ${number}`, () => new Promise((resolve) => setTimeout(resolve, number === 2 ? 20_000 : 50)));
  });
}
