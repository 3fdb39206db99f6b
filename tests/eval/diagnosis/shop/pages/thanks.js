import { byId } from '/shop.js';

const number = new URLSearchParams(location.search).get('order');
byId('number').textContent = number;
byId('receipt').href = `/receipts/${number}`;
