import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('Live', () => {
  test.describe.configure({ retries: 1 });

  for (const product of PRODUCTS) {
    test(`follows the stock of ${product}`, async ({ page }) => {
      await page.goto(`/product?id=${product.toLowerCase()}`);
      await expect(page.getByTestId('stock')).toHaveText('In stock');
      await expect(page.locator('#cart-link')).toHaveText('Cart (0)');
      await page.getByRole('button', { name: 'Add to cart' }).click();
      await expect(page.getByRole('status')).toHaveText('Added to cart');
    });
  }
});
