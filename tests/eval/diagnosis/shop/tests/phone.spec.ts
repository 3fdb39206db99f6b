import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('On a phone', () => {
  for (const product of PRODUCTS.slice(0, 4)) {
    test(`opens the cart with ${product}`, async ({ page }) => {
      await page.request.post('/api/cart', { data: { id: product.toLowerCase() } });
      await page.goto('/');
      await page.getByRole('link', { name: 'Cart' }).click();
      await expect(page.getByRole('listitem')).toContainText(product);
    });
  }
});
