import { api, badge, byId, calm, money, say } from '/shop.js';

const id = new URLSearchParams(location.search).get('id');
const field = (name) => document.querySelector(`[data-testid=${name}]`);

function deliveryDate() {
  const day = new Date();
  day.setDate(day.getDate() + 2);
  return day.toLocaleDateString(navigator.language, { day: 'numeric', month: 'long', year: 'numeric' });
}

async function showStock() {
  field('stock').textContent = 'Checking';
  byId('add').disabled = true;
  const { stock } = await api(`/api/stock/${id}`);
  field('stock').textContent = stock > 0 ? 'In stock' : 'Sold out';
  byId('add').disabled = stock === 0;
}

async function showProduct() {
  const product = await api(`/api/products/${id}`);
  byId('reviews').textContent = `${reviews.average(product.id).toFixed(1)} of 5`;
  byId('name').textContent = product.name;
  field('price').textContent = money(product.price, product.currency);
  byId('delivery').textContent = `Delivery on ${deliveryDate()}`;
}

byId('add').onclick = () => calm(async () => {
  await api('/api/cart', 'POST', { id });
  say('Added to cart');
  await badge();
});
calm(showProduct);
calm(showStock);
calm(badge);
