import { expect, PRODUCTS, test } from '../shop-test.ts';

const PRICES: Record<string, string> = {
  Teapot: '30.00 €', Cup: '12.00 €', Kettle: '45.00 €', Lamp: '60.00 €', Chair: '80.00 €', Desk: '150.00 €', Plate: '8.00 €',
  Bowl: '9.00 €', Fork: '4.00 €', Spoon: '4.50 €', Knife: '7.00 €', Vase: '25.00 €', Clock: '40.00 €', Mirror: '55.00 €',
};

test.describe('Product', () => {
  for (const product of PRODUCTS) {
    test(`shows the price of ${product}`, async ({ page }) => {
      await page.goto(`/product?id=${product.toLowerCase()}`);
      await expect(page.getByTestId('stock')).toHaveText('In stock');
      await expect(page.getByTestId('price')).toHaveText(PRICES[product] ?? '');
    });

    test(`adds ${product} to the cart`, async ({ page }) => {
      await page.goto(`/product?id=${product.toLowerCase()}`);
      await page.getByRole('button', { name: 'Add to cart' }).click();
      await expect(page.getByRole('status')).toHaveText('Added to cart');
      await expect(page.locator('#cart-link')).toHaveText('Cart (1)');
    });
  }
});
