import { expect, PRODUCTS, test } from '../shop-test.ts';

test.describe('API', () => {
  for (const product of PRODUCTS) {
    test(`answers with ${product}`, async ({ request }) => {
      const response = await request.get(`/api/products/${product.toLowerCase()}`);
      expect(response.status()).toBe(200);
      expect((await response.json()).name).toBe(product);
    });
  }
});
