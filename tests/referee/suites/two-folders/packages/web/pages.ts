import { test } from '@playwright/test';

export async function pay(): Promise<void> {
  await test.step('pays', () => {
    throw new Error('the card is declined');
  });
}
