import { api, byId, calm, say } from '/shop.js';

async function show(wanted) {
  const { products } = await api(`/api/products?q=${encodeURIComponent(wanted)}`);
  byId('products').innerHTML = products.map(({ id, name }) => `<li><a href="/product?id=${id}">${name}</a></li>`).join('');
  say(products.length === 1 ? '1 product' : `${products.length} products`);
}

byId('search').addEventListener('submit', (event) => {
  event.preventDefault();
  calm(() => show(event.target.elements.q.value));
});
calm(() => show(''));
