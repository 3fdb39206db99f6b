import { test } from '@playwright/test';
import { takesItsTime } from '../wait.ts';

test.describe.configure({ timeout: 0 });

for (let number = 1; number <= 200; number += 1) {
  test.beforeEach(`prepares ${number}`, () => takesItsTime(2_000));
}

test('is soon done', () => {});
