import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('Catalogue', () => {
  for (const product of PRODUCTS) {
    test(`finds ${product} by search`, async ({ page }) => {
      await page.goto('/');
      await expect(page.getByRole('status')).toHaveText('14 products');
      await page.getByLabel('Search').fill(product);
      await page.getByRole('button', { name: 'Search' }).click();
      await expect(page.getByRole('status')).toHaveText('1 product');
      await expect(page.getByRole('link', { name: product })).toBeVisible();
    });
  }
});
