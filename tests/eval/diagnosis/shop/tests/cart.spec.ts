import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('Cart', () => {
  for (const product of PRODUCTS.slice(0, 10)) {
    test.describe(product, () => {
      test.beforeEach(async ({ page }) => {
        await page.request.post('/api/cart', { data: { id: product.toLowerCase() } });
        await page.goto('/cart');
      });

      test(`changes the quantity of ${product}`, async ({ page }) => {
        const total = page.locator('#total');
        await expect(total).toHaveText(/\d €$/);
        const single = parseFloat((await total.textContent()) ?? '');
        await page.getByLabel(`Quantity of ${product}`).fill('3');
        await page.getByLabel(`Quantity of ${product}`).blur();
        await expect(total).toHaveText(`${(single * 3).toFixed(2)} €`);
      });

      test(`removes ${product} from the cart`, async ({ page }) => {
        page.on('dialog', (dialog) => dialog.accept());
        await page.getByRole('button', { name: `Remove ${product}` }).click();
        await expect(page.getByRole('status')).toHaveText('Your cart is empty');
      });

      test(`applies a coupon to ${product}`, async ({ page }) => {
        await page.getByLabel('Coupon').fill('SAVE10');
        await page.getByRole('button', { name: 'Apply' }).click();
        await expect(page.getByRole('status')).toHaveText('Coupon applied');
      });
    });
  }
});
