/** What stays whole while the payment is broken, so that this is no outage of everything. */
import { expect, test } from '../shop-test';

test.describe('Browsing', () => {
  test.beforeEach(async ({ page }) => {
    await page.goto('/');
  });

  for (const product of ['Teapot', 'Cup']) {
    test(`offers the ${product}`, async ({ page }) => {
      await expect(page.getByRole('listitem').filter({ hasText: product })).toBeVisible();
    });
  }

  for (const [product, price] of [['teapot', '30.00'], ['cup', '12.00']]) {
    test(`adds a ${product} to the total`, async ({ page }) => {
      await page.getByRole('button', { name: `Add ${product}` }).click();
      await expect(page.locator('#total')).toHaveText(String(price));
    });
  }

  for (const count of [1, 2]) {
    test(`counts ${count} of a kind`, async ({ page }) => {
      for (let added = 0; added < count; added += 1) await page.getByRole('button', { name: 'Add cup' }).click();
      await expect(page.locator('#count')).toHaveText(String(count));
    });
  }
});
