import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('In Berlin', () => {
  for (const product of PRODUCTS.slice(0, 4)) {
    test(`promises to deliver ${product}`, async ({ page }) => {
      await page.clock.setFixedTime('2026-03-10T12:30:00Z');
      await page.goto(`/product?id=${product.toLowerCase()}`);
      await expect(page.locator('#delivery')).toHaveText('Delivery on 12 March 2026');
    });
  }
});
