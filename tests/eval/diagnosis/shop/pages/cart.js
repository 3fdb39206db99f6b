import { api, byId, calm, money, say } from '/shop.js';

function show({ lines, count, total, currency }) {
  byId('cart-link').textContent = `Cart (${count})`;
  byId('total').textContent = money(total, currency);
  byId('lines').innerHTML = lines.map(({ id, name, quantity }) =>
    `<li data-id="${id}">${name} <label>Quantity of ${name} <input value="${quantity}"></label> <button>Remove ${name}</button></li>`).join('');
  if (count === 0) say('Your cart is empty');
  for (const line of byId('lines').children) {
    const path = `/api/cart/${line.dataset.id}`;
    line.querySelector('input').onchange = ({ target }) => calm(async () => show(await api(path, 'PATCH', { quantity: target.value })));
    line.querySelector('button').onclick = () => calm(async () => {
      if (confirm('Remove it?')) show(await api(path, 'DELETE'));
    });
  }
}

byId('coupon').addEventListener('submit', (event) => {
  event.preventDefault();
  calm(async () => {
    show(await api('/api/coupon', 'POST', { code: event.target.elements.code.value }));
    say('Coupon applied');
  });
});
calm(async () => show(await api('/api/cart')));
