/** The application does something else than before, without an error of its own. */
import { answers, drops, edit, fails, late, line, makeCase, partner, request, slow, unanswered } from './kinds.mjs';

const regression = makeCase('likely-regression');
const cover = '<div id="consent" style="position:fixed;inset:0;background:#0008"></div></body>';
const price = (id, value) => ({ change: (state) => { state.products.find((each) => each.id === id).price = value; } });

export default [
  regression('finds Kettle by search', { answer: ({ query }) => (query.get('q') ? { status: 404, body: {} } : undefined) }, request('/api/products', 404)),
  regression('finds Chair by search', { answer: ({ query }) => (query.get('q') ? { body: { products: [] } } : undefined) }, line('0 products')),
  regression('finds Plate by search', edit('/index.html', '/catalogue.js', '/catalogue-2.js'), request('catalogue-2.js', 404)),
  regression('finds Bowl by search', { headers: { '/': { 'content-security-policy': "script-src 'none'" } } }, line(/Content Security Policy/, /script-src/)),
  regression('finds Fork by search', edit('/catalogue.js', "'1 product'", "'1 result'"), line('1 result')),
  regression('finds Spoon by search', edit('/index.html', '</body>', cover), line('consent', 'intercepts pointer events')),
  regression('finds Knife by search', edit('/index.html', '<button>Search', '<button disabled>Search'), line(/not enabled|\[disabled\]/)),
  regression('finds Clock by search', slowSearch(), unanswered('/api/products')),
  regression('finds Mirror by search', edit('/catalogue.js', '>${name}</a>', '>${name.slice(0, 4)}…</a>'), line(/"Mirr…"|Mirr…/)),

  regression('shows the price of Teapot', price('teapot', 35.7), line('35.70')),
  regression('shows the price of Cup', { answer: ({ path }) => (path === '/api/products/cup' ? { body: { id: 'cup', name: 'Cup', price: 0, currency: 'EUR' }, logs: ['prices: list 2026-03 has no entry for cup'] } : undefined) }, line('no entry for cup')),
  regression('shows the price of Spoon', edit('/shop.js', 'toFixed(2)', 'toString()'), line('4.5 €')),
  regression('shows the price of Vase', answers('GET', '/api/products/', { status: 404, body: {} }), request('/api/products/vase', 404)),
  regression('shows the price of Clock', { change: (state) => { state.products.find(({ id }) => id === 'clock').stock = 0; } }, line('Sold out')),
  regression('shows the price of Knife', { answer: ({ path }) => (path === '/product' ? { status: 302, headers: { location: '/login' }, body: '' } : undefined) }, line('/login'), line('heading "Sign in"')),

  regression('adds Kettle to the cart', fails('POST', '/api/cart', 403), request('/api/cart', 403)),
  regression('adds Chair to the cart', edit('/product.html', '</body>', cover), line('consent', 'intercepts pointer events')),
  regression('adds Plate to the cart', edit('/product.js', 'await badge();', ''), line('Cart (0)')),
  regression('adds Bowl to the cart', edit('/product.js', "await api('/api/cart', 'POST', { id });", "await Promise.all([api('/api/cart', 'POST', { id }), api('/api/cart', 'POST', { id })]);"), line('Cart (2)')),
  regression('adds Fork to the cart', edit('/product.html', '<p role="status"></p>', '<p role="status"></p><button>Add to cart and pay</button>'), line('strict mode violation', 'resolved to 2')),
  regression('adds Spoon to the cart', edit('/product.html', '<button id="add"', '<button id="add" hidden'), line(/not visible|hidden/)),
  regression('adds Knife to the cart', edit('/style.css', 'nav a {', '#add { animation: a 40ms infinite alternate linear; } @keyframes a { to { transform: translate(200px); } } nav a {'), line('not stable')),
  regression('adds Mirror to the cart', answers('POST', '/api/cart', { body: { count: 0, refused: 'limit of one per customer' } }), line('limit of one per customer')),

  regression('changes the quantity of Cup', { answer: ({ method, path }, state) => (method === 'PATCH' && path.startsWith('/api/cart') ? { body: { lines: state.cart, count: 3, total: 39.96, currency: 'EUR' } } : undefined) }, line('39.96')),
  regression('changes the quantity of Chair', slow('PATCH', '/api/cart'), unanswered('/api/cart/chair')),
  regression('changes the quantity of Desk', edit('/cart.js', 'byId(\'total\').textContent = money(total, currency)', 'byId(\'total\').textContent = money(total + (total > 200 ? 4.9 : 0), currency)'), line('454.90')),
  regression('changes the quantity of Plate', edit('/cart.js', '<input value=', '<input readonly value='), line(/not editable|readonly/)),
  regression('changes the quantity of Fork', fails('PATCH', '/api/cart', 422), request('/api/cart/fork', 422)),
  regression('changes the quantity of Spoon', fails('GET', '/api/cart', 401), request('/api/cart', 401)),

  regression('removes Teapot from the cart', edit('/cart.js', "if (confirm('Remove it?')) show(await api(path, 'DELETE'));", "byId('lines').innerHTML += '<li role=dialog aria-label=\"Really remove it?\"><button>Yes</button></li>';"), line('Really remove it?')),
  regression('removes Kettle from the cart', fails('DELETE', '/api/cart', 404), request('/api/cart/kettle', 404)),
  regression('removes Plate from the cart', edit('/cart.js', 'Your cart is empty', 'Nothing in your cart'), line('Nothing in your cart')),
  regression('removes Bowl from the cart', { answer: ({ method, path }, state) => (method === 'DELETE' && path.startsWith('/api/cart') ? { body: { lines: state.cart, count: 1, total: 9, currency: 'EUR' }, logs: ['cart: delete of bowl ignored, line is locked by promotion 17'] } : undefined) }, line('locked by promotion 17')),
  regression('removes Fork from the cart', fails('DELETE', '/api/cart', 405), request('/api/cart/fork', 405)),

  regression('applies a coupon to Teapot', fails('POST', '/api/coupon', 410, ['coupon: SAVE10 ended on 2026-02-28']), line('SAVE10 ended on 2026-02-28')),
  regression('applies a coupon to Cup', fails('POST', '/api/coupon', 429), request('/api/coupon', 429)),
  regression('applies a coupon to Kettle', edit('/cart.js', "say('Coupon applied')", "say('10% off')"), line('10% off')),
  regression('applies a coupon to Desk', slow('POST', '/api/coupon'), unanswered('/api/coupon')),
  regression('applies a coupon to Fork', drops('POST', '/api/coupon'), line('/api/coupon', /no (answer|response)|ERR_EMPTY|"status": ?(0|-1)/i)),

  regression('buys Teapot', partner('/payments', { body: { token: 'tok' } }), line(/CORS policy/)),
  regression('buys Lamp', { headers: { '/checkout': { 'content-security-policy': "connect-src 'self'" } } }, line(/Content Security Policy/, /connect-src/)),
  regression('buys Plate', edit('/checkout.html', '<div id="more"></div>', '<label><input type="checkbox" required> I accept the terms</label>'), line('checkbox "I accept the terms"')),
  regression('buys Bowl', edit('/checkout.html', '<button id="pay">', '<button id="pay" disabled>'), line(/not enabled|\[disabled\]/)),
  regression('buys Spoon', edit('/checkout.js', "say('Paying');", "if (!byId('postcode')) return say('Postcode is required');"), line('Postcode is required')),
  regression('buys Vase', answers('POST', '/api/orders', { status: 302, headers: { location: '/login' } }), line('/login')),
  regression('buys Clock', { partner: ({ path }) => (path.startsWith('/payments') ? late() : undefined) }, unanswered('/payments')),

  regression('downloads the receipt of Teapot', answers('GET', '/receipts/', { body: 'Receipt 1001' }), line('/receipts/1001', '200'), line(/"address": ?"[^"]*\/receipts\/1001|address: \S*\/receipts\/1001/)),
  regression('downloads the receipt of Kettle', answers('GET', '/receipts/', { body: 'Receipt 1001\n0 x Kettle\n', headers: { 'content-disposition': 'attachment; filename="receipt-1001.txt"' } }), line('0 x Kettle')),
  regression('downloads the receipt of Lamp', answers('GET', '/receipts/', { body: 'Receipt 1001\n1 x Lamp\n', headers: { 'content-disposition': 'attachment; filename="invoice-1001.txt"' } }), line('invoice-1001.txt')),
  regression('downloads the receipt of Desk', edit('/thanks.js', '/receipts/${number}', '/receipts/${number.id}'), request('/receipts/undefined', 404)),
  regression('downloads the receipt of Plate', edit('/thanks.js', "byId('receipt').href = `/receipts/${number}`;", "byId('receipt').parentElement.textContent = 'Your payment is pending';"), line('Your payment is pending')),

  regression('lists Kettle among the orders', { answer: ({ method, path, body }) => (method === 'POST' && path === '/api/session' && body.password ? { body: {}, headers: { 'set-cookie': 'session=abc; Path=/shop; HttpOnly' } } : undefined) }, line('Path=/shop')),
  regression('lists Lamp among the orders', { answer: ({ path }) => (path === '/account' || path === '/login' ? { status: 302, headers: { location: path === '/account' ? '/login' : '/account' }, body: '' } : undefined) }, line('ERR_TOO_MANY_REDIRECTS')),
  regression('lists Plate among the orders', edit('/login.html', '<div id="more"></div>', '<p><label><input type="checkbox" required> I am not a robot</label></p>'), line('checkbox "I am not a robot"')),
  regression('lists Bowl among the orders', answers('GET', '/api/orders', { body: { orders: [] }, logs: ['orders: customer 7 is unknown in database shop_copy'] }), line('database shop_copy')),
  regression('lists Fork among the orders', edit('/account.js', '${lines.map(({ name }) => name).join(', '${lines.map(({ id }) => id.slice(0, 3)).join('), line('cell "for"')),

  regression('asks the support about Kettle', { partner: ({ path }) => (path === '/chat.html' ? { body: 'no', type: 'text/html', headers: { 'x-frame-options': 'DENY' } } : undefined) }, line(/X-Frame-Options/i, /deny/i)),
  regression('asks the support about Plate', { partner: ({ path }) => (path === '/answers' ? late() : undefined) }, unanswered('/answers')),
  regression('asks the support about Bowl', partner('/answers', { body: { text: 'All agents are busy' } }), line('All agents are busy')),
];

/** The list of all products comes as ever; only the search is slow. */
function slowSearch() {
  return {
    answer: async ({ query }) => {
      if (query.get('q')) await late();
      return undefined;
    },
  };
}
