import { test } from '@playwright/test';

for (let number = 1; number <= 10; number += 1) {
  test(`has a lot to tell ${number}`, async () => {
    for (let step = 1; step <= 400; step += 1) await test.step(`${step} ${'goes on '.repeat(400)}`, () => {});
  });
}
