/**
 * Four projects with their tests, and the stories that their histories tell. Days count
 * backwards from now. A story decides which tests it concerns, when and where, how likely
 * they fail, whether a second attempt passes, and why (`causes.mjs`).
 */
import * as causes from './causes.mjs';

const MINUTE = 60_000;

/** `titles` of one file: a title, or a title with what is special about the test. */
function file(path, { suite, owner, feature, priority, tags = [], usual = 2_400 }, titles) {
  return titles.map((entry, at) => {
    const [title, special = {}] = Array.isArray(entry) ? entry : [entry];
    return { file: path, line: 9 + at * 14, suite: [suite], title, owner, feature, priority, usual, ...special, tags: [...tags, ...(special.tags ?? [])] };
  });
}

const inFile = (part) => (test) => test.file.includes(part);
const titled = (...titles) => (test) => titles.includes(test.title);

const shop = {
  name: 'shop',
  origin: 'https://staging.shop.example',
  repository: 'https://github.com/teashop/shop',
  description: 'Storefront: catalogue, cart, checkout and account',
  tags: ['storefront', 'critical'],
  browsers: ['chromium', 'firefox'],
  workers: 4,
  environments: ['staging', 'staging', 'production'],
  branches: ['feature/gift-cards', 'feature/faster-search', 'fix/rounding', 'release/2.4'],
  setup: [['Global set-up: seed the catalogue', 3_100], ['Sign in as a customer', 1_250], ['Sign in as an administrator', 980]],
  authors: ['Mira Santos', 'Jonas Weber', 'Aiko Tanaka'],
  messages: ['Show stock in the product list', 'Round prices once', 'Cache the category tree', 'Remember the chosen currency',
    'Split the cart reducer', 'Update dependencies', 'Lazy-load product pictures', 'Explain declined cards'],
  tests: [
    ...file('tests/catalogue/list.spec.ts', { suite: 'Product list', owner: 'discovery', feature: 'Catalogue', tags: ['catalogue'], usual: 1_700 }, [
      ['loads the product list', { tags: ['smoke'] }], 'filters by brand', 'filters by price', 'sorts by rating', 'shows sold out products', 'keeps filters on reload',
    ]),
    ...file('tests/catalogue/search.spec.ts', { suite: 'Search', owner: 'discovery', feature: 'Search', tags: ['catalogue'], usual: 2_100 }, [
      ['finds a product by name', { tags: ['smoke'] }], 'suggests while typing', 'forgives a typing error', 'says that nothing was found', 'shows recent searches',
    ]),
    ...file('tests/catalogue/product.spec.ts', { suite: 'Product page', owner: 'discovery', feature: 'Catalogue', usual: 1_900 }, [
      'shows price and stock', 'changes the picture', 'chooses a size', 'shows recommendations', 'reads reviews',
    ]),
    ...file('tests/cart/cart.spec.ts', { suite: 'Cart', owner: 'checkout', feature: 'Cart', priority: 'high', tags: ['cart'], usual: 2_200 }, [
      ['adds an item', { tags: ['smoke'] }], 'removes an item', 'changes the quantity', 'keeps the cart after signing in', 'shows the total with tax', 'merges two carts',
    ]),
    ...file('tests/cart/coupon.spec.ts', { suite: 'Coupons', owner: 'checkout', feature: 'Cart', tags: ['cart'], usual: 2_600 }, [
      'applies a coupon', 'refuses an expired coupon', 'rounds the discount', 'applies only one coupon',
    ]),
    ...file('tests/checkout/payment.spec.ts', { suite: 'Checkout', owner: 'payments', feature: 'Checkout', priority: 'critical', tags: ['checkout'], usual: 4_300 }, [
      ['pays by card', { tags: ['smoke'] }], 'pays by invoice', 'pays with a voucher', 'asks for 3-D Secure', 'refuses a declined card', 'keeps the address', 'sends a confirmation',
    ]),
    ...file('tests/checkout/shipping.spec.ts', { suite: 'Shipping', owner: 'payments', feature: 'Checkout', priority: 'high', tags: ['checkout'], usual: 3_100 }, [
      'offers express delivery', 'ships to a parcel station', 'shows the delivery date', 'splits an order',
    ]),
    ...file('tests/account/account.spec.ts', { suite: 'Account', owner: 'identity', feature: 'Account', usual: 2_000 }, [
      ['signs in', { tags: ['smoke'] }], 'signs out', 'resets a password', 'changes the address', 'lists past orders', 'deletes the account',
    ]),
  ],
  markers: [
    { at: 19.1, label: 'Release 2.3', category: 'release', environment: 'production' },
    { at: 12.4, label: 'Release 2.3.1', category: 'release', environment: 'production', description: 'Rounds the tax once.' },
    { at: 8.4, label: 'Staging moved to another cluster', category: 'infra', environment: 'staging' },
    { at: 2.7, label: 'Checkout form, variant B', category: 'config', environment: 'staging' },
  ],
  stories: [
    { of: titled('pays by card', 'pays by invoice', 'pays with a voucher', 'keeps the address', 'sends a confirmation', 'splits an order'),
      from: 2.6, until: 0, branches: ['main'], chance: 1, cause: causes.renamedButton, commit: { message: 'Reword the order button', author: 'Mira Santos' } },
    { of: titled('shows the total with tax', 'rounds the discount'), from: 19, until: 12.5, branches: ['main', 'release/2.4'], chance: 1,
      cause: causes.wrongTotal, commit: { message: 'Compute tax per line', author: 'Jonas Weber' }, fix: { message: 'Round the tax once, on the total', author: 'Aiko Tanaka' } },
    { of: titled('shows recommendations', 'reads reviews'), from: 28, until: 0, chance: 0.22, again: 0.93, cause: causes.upstreamError },
    { of: titled('suggests while typing'), from: 28, until: 0, chance: 0.34, again: 0.95, cause: causes.slowList },
    { of: titled('merges two carts'), from: 16, until: 0, chance: 0.25, again: 0.92, browser: 'firefox', cause: causes.detachedElement },
    { of: titled('chooses a size'), from: 28, until: 9, chance: 0.2, again: 0.96, cause: causes.slowList },
    { of: titled('changes the picture'), from: 6, until: 0, chance: 0.3, again: 0.85, browser: 'firefox', cause: causes.pictureDiffers },
    { of: titled('lists past orders', 'changes the address', 'deletes the account'), from: 6.5, until: 3.4, branches: ['main', 'feature/gift-cards'], chance: 0.8, cause: causes.twoLinks },
    { of: () => true, from: 8.35, until: 8, chance: 0.93, cause: causes.connectionRefused },
    { of: inFile('list.spec.ts'), from: 10, until: 0, slower: 1.9, commit: { message: 'Sort products in the browser', author: 'Aiko Tanaka' } },
    { of: inFile('search.spec.ts'), from: 15, until: 0, slower: 0.62, commit: { message: 'Index product names', author: 'Jonas Weber' } },
    { of: titled('shows recent searches'), from: 28, until: 0, chance: 1, skip: true },
  ],
};

const admin = {
  name: 'admin console',
  origin: 'https://admin.shop.example',
  repository: 'https://github.com/teashop/admin',
  description: 'Back office for orders, stock and refunds',
  tags: ['internal'],
  browsers: ['chromium'],
  workers: 3,
  environments: ['staging'],
  branches: ['feature/audit-log', 'feature/bulk-refunds'],
  authors: ['Priya Nair', 'Tom Becker'],
  messages: ['Page the order list', 'Export refunds', 'Sharpen permissions', 'Move filters to the address', 'Update dependencies'],
  tests: [
    ...file('tests/orders/orders.spec.ts', { suite: 'Orders', owner: 'backoffice', feature: 'Orders', usual: 3_200 }, [
      ['lists orders', { tags: ['smoke'] }], 'filters orders by state', 'opens an order', 'adds a note', 'cancels an order', 'prints a delivery note', 'exports orders',
    ]),
    ...file('tests/orders/refunds.spec.ts', { suite: 'Refunds', owner: 'backoffice', feature: 'Refunds', priority: 'high', usual: 3_900 }, [
      'refunds an order', 'refunds a part', 'asks for a second pair of eyes', 'refuses a second refund',
    ]),
    ...file('tests/stock/stock.spec.ts', { suite: 'Stock', owner: 'warehouse', feature: 'Stock', usual: 2_700 }, [
      'counts stock', 'moves stock', 'warns about low stock', 'imports a delivery', 'corrects a count',
    ]),
    ...file('tests/people/permissions.spec.ts', { suite: 'Permissions', owner: 'identity', feature: 'Permissions', priority: 'critical', usual: 1_600 }, [
      'hides what is not allowed', 'lets managers approve', 'logs every change', 'ends sessions of removed people',
    ]),
  ],
  stories: [
    { of: titled('exports orders'), from: 28, until: 0, chance: 0.22, again: 0.85, cause: causes.slowDownload },
    { of: titled('imports a delivery'), from: 21, until: 6, chance: 0.3, again: 0.7, cause: causes.upstreamError },
    { of: inFile('orders.spec.ts'), from: 12, until: 0, slower: 1.35, commit: { message: 'Page the order list', author: 'Priya Nair' } },
    { of: titled('asks for a second pair of eyes'), from: 4, until: 3.2, branches: ['feature/bulk-refunds'], chance: 1, cause: causes.twoLinks },
  ],
};

const mobile = {
  name: 'mobile web',
  origin: 'https://m.shop.example',
  repository: 'https://github.com/teashop/mobile',
  description: 'The storefront on small screens',
  tags: ['storefront'],
  browsers: ['pixel', 'iphone'],
  workers: 2,
  environments: ['staging', 'production'],
  branches: ['feature/bottom-bar', 'fix/keyboard'],
  authors: ['Lena Fischer', 'Mira Santos'],
  messages: ['Larger touch targets', 'Keep the keyboard open', 'Swipe between pictures', 'Update dependencies'],
  tests: [
    ...file('tests/browse.spec.ts', { suite: 'Browsing', owner: 'mobile', feature: 'Catalogue', usual: 2_600 }, [
      ['opens the menu', { tags: ['smoke'] }], 'swipes through pictures', 'pulls to refresh', 'shows the bottom bar', 'zooms a picture',
    ]),
    ...file('tests/buy.spec.ts', { suite: 'Buying', owner: 'mobile', feature: 'Checkout', priority: 'critical', usual: 4_800 }, [
      ['buys in one tap', { tags: ['smoke'] }], 'scans a coupon', 'pays with the wallet', 'types an address',
    ]),
    ...file('tests/offline.spec.ts', { suite: 'Offline', owner: 'platform', feature: 'Offline', usual: 5_200 }, [
      'shows the last page', 'queues an order', 'tells that there is no network',
    ]),
  ],
  stories: [
    { of: titled('pays with the wallet', 'buys in one tap'), from: 1.3, until: 0, branches: ['main', 'feature/bottom-bar'], chance: 1, cause: causes.coveredButton,
      commit: { message: 'Bottom bar on every page', author: 'Lena Fischer' } },
    { of: titled('queues an order'), from: 28, until: 0, chance: 0.38, again: 0.75, cause: causes.testTimeout },
    { of: titled('swipes through pictures'), from: 20, until: 0, chance: 0.2, again: 0.9, browser: 'iphone', cause: causes.detachedElement },
  ],
};

const api = {
  name: 'payments api',
  origin: 'https://payments.example',
  repository: 'https://github.com/teashop/payments',
  description: 'Contract tests of the payment service',
  tags: ['critical'],
  browsers: ['api'],
  workers: 4,
  environments: ['staging', 'production'],
  branches: ['feature/instant-payments'],
  authors: ['Noor Haddad', 'Jonas Weber'],
  messages: ['Validate IBANs', 'Retry webhooks', 'Log request ids', 'Update dependencies'],
  tests: [
    ...file('api/payments.spec.ts', { suite: 'Payments', owner: 'payments', feature: 'Payments', priority: 'critical', usual: 260 }, [
      ['creates a payment', { tags: ['smoke'] }], 'captures a payment', 'cancels a payment', 'refunds a payment', 'repeats a request once', 'refuses an unknown currency', 'lists payments',
    ]),
    ...file('api/webhooks.spec.ts', { suite: 'Webhooks', owner: 'payments', feature: 'Webhooks', usual: 420 }, [
      'signs webhooks', 'retries a webhook', 'gives up after a day', 'keeps the order of events',
    ]),
    ...file('api/limits.spec.ts', { suite: 'Limits', owner: 'platform', feature: 'Limits', usual: 180 }, [
      'answers 429', 'sends Retry-After', 'counts by key',
    ]),
  ],
  stories: [
    { of: titled('retries a webhook'), from: 28, until: 0, chance: 0.12, again: 0.95, cause: causes.upstreamError },
    { of: titled('refuses an unknown currency', 'lists payments'), from: 23, until: 21.5, chance: 1, cause: causes.wrongStatus, fix: { message: 'Answer 422 for unknown currencies', author: 'Noor Haddad' } },
  ],
};

/** Words that group projects, with their colours. */
export const TAGS = { storefront: 'teal', critical: 'red', internal: 'neutral' };
export const PROJECTS = [shop, admin, mobile, api];
export const TIMEOUT = 0.5 * MINUTE;
