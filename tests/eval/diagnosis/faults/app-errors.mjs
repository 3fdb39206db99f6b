/** The application answers with an error, or throws one. */
import { answers, drops, edit, fails, line, makeCase, partner, request } from './kinds.mjs';

const appError = makeCase('app-error');

export default [
  appError('finds Cup by search', searchFails(500), request('/api/products', 500)),
  appError('finds Desk by search', edit('/catalogue.js', 'const { products } =', 'const { items: products } ='), line('Cannot read properties of undefined', 'map')),
  appError('finds Lamp by search', searchFails(503, ['search: index is being rebuilt']), line('index is being rebuilt')),
  appError('shows the price of Kettle', fails('GET', '/api/products/', 500), request('/api/products/kettle', 500)),
  appError('shows the price of Lamp', answers('GET', '/api/products/', { body: '<html>Bad gateway</html>', type: 'text/html' }), line('Unexpected token')),
  appError('shows the price of Plate', fails('GET', '/api/stock', 503), request('/api/stock/plate', 503)),
  appError('shows the price of Bowl', drops('GET', '/api/stock'), line('/api/stock/bowl', /no (answer|response)|ERR_EMPTY|"status": ?(0|-1)/i)),
  appError('shows the price of Mirror', edit('/shop.js', 'amount.toFixed(2)', 'amount.value.toFixed(2)'), line('Cannot read properties of undefined', 'toFixed')),
  appError('adds Cup to the cart', fails('POST', '/api/cart', 500), request('/api/cart', 500)),
  appError('adds Lamp to the cart', edit('/product.js', "byId('add').onclick", "byId('add-to-cart').onclick"), line('Cannot set properties of null', 'onclick')),
  appError('adds Desk to the cart', fails('GET', '/api/stock', 500), request('/api/stock/desk', 500)),
  appError('adds Vase to the cart', fails('POST', '/api/cart', 502, ['cart: connection to redis:6379 refused']), line('redis:6379 refused')),
  appError('adds Clock to the cart', edit('/product.js', 'await badge();', 'await updateBadge();'), line('updateBadge is not defined')),
  appError('changes the quantity of Teapot', fails('PATCH', '/api/cart', 500), request('/api/cart/teapot', 500)),
  appError('changes the quantity of Lamp', edit('/cart.js', "{ quantity: target.value }", "{ quantity: target.value.toFixed() }"), line('toFixed is not a function')),
  appError('changes the quantity of Bowl', fails('PATCH', '/api/cart', 504, ['cart: lock of session abc not released after 30 s']), line('lock of session abc not released')),
  appError('removes Cup from the cart', fails('DELETE', '/api/cart', 500), request('/api/cart/cup', 500)),
  appError('removes Chair from the cart', edit('/cart.js', "if (confirm('Remove it?'))", "if (dialogs.confirm('Remove it?'))"), line('dialogs is not defined')),
  appError('removes Spoon from the cart', fails('DELETE', '/api/cart', 500, ['cart: deadlock detected, transaction rolled back']), line('deadlock detected')),
  appError('applies a coupon to Chair', fails('POST', '/api/coupon', 500), request('/api/coupon', 500)),
  appError('applies a coupon to Bowl', edit('/cart.js', "say('Coupon applied')", "notify('Coupon applied')"), line('notify is not defined')),
  appError('buys Cup', { partner: ({ method, path }) => (method === 'POST' && path === '/payments' ? { status: 500, headers: { 'access-control-allow-origin': '*' } } : undefined) }, request('/payments', 500)),
  appError('buys Chair', fails('POST', '/api/orders', 500, ['orders: column "tax_rate" does not exist']), line('tax_rate')),
  appError('buys Fork', fails('POST', '/api/orders', 503), request('/api/orders', 503)),
  appError('buys Knife', edit('/checkout.js', 'const { token } =', 'const { id: { token } } ='), line('Cannot read properties of undefined', 'token')),
  appError('downloads the receipt of Cup', fails('GET', '/receipts/', 500), request('/receipts/', 500)),
  appError('lists Cup among the orders', fails('POST', '/api/session', 500), request('/api/session', 500)),
  appError('lists Desk among the orders', fails('GET', '/api/orders', 500), request('/api/orders', 500)),
  appError('lists Vase among the orders', edit('/account.js', 'lines.map(({ name }) => name)', 'lines.map(({ product }) => product.name)'), line('Cannot read properties of undefined', 'name')),
  appError('asks the support about Lamp', partner('/answers', { status: 500 }), request('/answers', 500)),
  appError('asks the support about Fork', edit('/chat.js', 'answer.text', 'answer.messages[0].text'), line('Cannot read properties of undefined', "'0'")),
];

/** The list of all products is shown as ever; only the search fails. */
function searchFails(status, logs) {
  return { answer: (call) => (call.query.get('q') ? { status, body: { error: 'error' }, logs } : undefined) };
}
