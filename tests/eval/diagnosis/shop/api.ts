/** What the shop and its partners answer. */
import type { IncomingMessage } from 'node:http';

export interface Product { id: string; name: string; price: number; stock: number }
export interface Line { id: string; name: string; price: number; quantity: number }
export interface Order { number: number; lines: Line[]; total: number }

export interface State {
  products: Product[];
  cart: Line[];
  discount: number;
  orders: Order[];
  password: string;
  settings: Record<string, string>;
}

export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  cookie: string;
  body: Record<string, unknown>;
}

export interface Answer {
  status?: number;
  body?: unknown;
  type?: string;
  headers?: Record<string, string>;
  /** Lines of the backend's log about this call. */
  logs?: string[];
  /** Close the connection without an answer. */
  drop?: boolean;
}

const PRICES: Record<string, number> = {
  Teapot: 30, Cup: 12, Kettle: 45, Lamp: 60, Chair: 80, Desk: 150, Plate: 8, Bowl: 9, Fork: 4, Spoon: 4.5, Knife: 7, Vase: 25,
  Clock: 40, Mirror: 55,
};

export function startingState(): State {
  const products = Object.entries(PRICES).map(([name, price]) => ({ id: name.toLowerCase(), name, price, stock: 7 }));
  return { products, cart: [], discount: 0, orders: [], password: 'correct horse', settings: { CURRENCY: 'EUR' } };
}

export async function callOf(request: IncomingMessage): Promise<Call> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://shop');
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const body = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { method: request.method ?? 'GET', path: pathname, query: searchParams, cookie: request.headers.cookie ?? '', body };
}

const total = (state: State): number =>
  state.cart.reduce((sum, line) => sum + line.price * line.quantity, 0) * (1 - state.discount);

const cart = (state: State): unknown => ({
  lines: state.cart, count: state.cart.reduce((sum, { quantity }) => sum + quantity, 0), total: total(state), currency: state.settings['CURRENCY'],
});

/** Undefined for what is no call of the API. */
export function shopAnswer(call: Call, state: State): Answer | undefined {
  const { method, path, query, body } = call;
  const isSignedIn = call.cookie.includes('session=');
  const id = path.split('/')[3] ?? '';
  switch (`${method} ${path.replace(/^(\/api\/\w+)\/[\w-]+/, '$1/:id')}`) {
    case 'GET /api/products': {
      const wanted = (query.get('q') ?? '').toLowerCase();
      return { body: { products: state.products.filter(({ name }) => name.toLowerCase().includes(wanted)) } };
    }
    case 'GET /api/products/:id': {
      const product = state.products.find((each) => each.id === id);
      return product ? { body: { ...product, currency: state.settings['CURRENCY'] } } : { status: 404, body: { error: 'no such product' } };
    }
    case 'GET /api/stock/:id':
      return { body: { stock: state.products.find((each) => each.id === id)?.stock ?? 0 } };
    case 'GET /api/cart':
      return { body: cart(state) };
    case 'POST /api/cart': {
      const product = state.products.find((each) => each.id === body['id']);
      if (!product) return { status: 404, body: { error: 'no such product' } };
      const line = state.cart.find((each) => each.id === product.id);
      if (line) line.quantity += 1;
      else state.cart.push({ id: product.id, name: product.name, price: product.price, quantity: 1 });
      return { body: cart(state) };
    }
    case 'PATCH /api/cart/:id':
      for (const line of state.cart) if (line.id === id) line.quantity = Number(body['quantity']);
      return { body: cart(state) };
    case 'DELETE /api/cart/:id':
      state.cart = state.cart.filter((line) => line.id !== id);
      return { body: cart(state) };
    case 'POST /api/coupon':
      if (body['code'] !== 'SAVE10') return { status: 404, body: { error: 'no such coupon' } };
      state.discount = 0.1;
      return { body: cart(state) };
    case 'POST /api/orders': {
      if (String(body['card']).endsWith('24')) return { status: 402, body: { error: 'Card expired in 12/24' } };
      const order = { number: 1001 + state.orders.length, lines: state.cart, total: total(state) };
      state.orders.push(order);
      state.cart = [];
      return { body: order };
    }
    case 'GET /api/orders':
      return isSignedIn ? { body: { orders: state.orders } } : { status: 401, body: { error: 'not signed in' } };
    case 'POST /api/session':
      return body['password'] === state.password
        ? { body: { name: body['name'] }, headers: { 'set-cookie': 'session=abc; Path=/; HttpOnly' } }
        : { status: 401, body: { error: 'Wrong name or password' } };
    default:
      return page(call, state, isSignedIn);
  }
}

function page({ path }: Call, state: State, isSignedIn: boolean): Answer | undefined {
  if (path === '/account' && !isSignedIn) return { status: 302, headers: { location: '/login' }, body: '' };
  const receipt = /^\/receipts\/(\d+)$/.exec(path);
  const order = receipt && state.orders.find(({ number }) => number === Number(receipt[1]));
  if (!order) return undefined;
  const lines = order.lines.map(({ name, quantity }) => `${quantity} x ${name}`);
  return {
    body: [`Receipt ${order.number}`, ...lines, `Total ${order.total.toFixed(2)} EUR`, ''].join('\n'),
    headers: { 'content-disposition': `attachment; filename="receipt-${order.number}.txt"` },
  };
}

const OPEN = { 'access-control-allow-origin': '*', 'access-control-allow-headers': 'content-type' };

export function partnerAnswer({ method, path, body }: Call): Answer | undefined {
  if (method === 'OPTIONS') return { status: 204, body: '', headers: OPEN };
  if (path === '/payments') return { body: { token: `tok-${String(body['amount'])}` }, headers: OPEN };
  if (path === '/answers') return { body: { text: `We will look into ${String(body['text'])}` } };
  return undefined;
}
