import { api, byId, calm, money, say } from '/shop.js';

calm(async () => {
  const { orders } = await api('/api/orders');
  byId('orders').innerHTML = orders.map(({ number, lines, total }) =>
    `<tr><td>${number}</td><td>${lines.map(({ name }) => name).join(', ')}</td><td>${money(total)}</td></tr>`).join('');
  say(orders.length === 0 ? 'No orders yet' : `${orders.length} orders`);
});
