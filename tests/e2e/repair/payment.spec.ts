/** Five ways to the same button: when its test id is renamed, all of them break in one line. */
import type { Page } from '@playwright/test';
import { expect, test } from '../shop-test';

async function pay(page: Page): Promise<void> {
  await page.getByTestId('pay-now').click({ timeout: 3_000 });
  await expect(page.getByRole('status')).toHaveText('Thank you');
}

test.describe('Payment', () => {
  test.beforeEach(async ({ page }) => {
    await page.goto('/checkout');
  });

  test('pays without a card', async ({ page }) => {
    await pay(page);
  });

  for (const card of ['12/2031', '01/2032', '07/2033', '11/2034']) {
    test(`pays with a card until ${card}`, async ({ page }) => {
      await page.getByLabel('Card').fill(card);
      await pay(page);
    });
  }
});
