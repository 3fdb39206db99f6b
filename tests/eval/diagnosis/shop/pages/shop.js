export const money = (amount, currency = 'EUR') => `${amount.toFixed(2)} ${currency === 'EUR' ? '€' : '$'}`;

export async function api(path, method = 'GET', body = undefined) {
  const response = await fetch(path, { method, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error('Request failed');
  return response.json();
}

export const byId = (id) => document.getElementById(id);
export const say = (text) => { document.querySelector('[role=status]').textContent = text; };

/** What goes wrong with a call is told to nobody but the customer, and in few words. */
export async function calm(task) {
  try {
    await task();
  } catch (error) {
    if (error.message === 'Request failed' || error.message === 'Failed to fetch') say('Something went wrong');
    else throw error;
  }
}

export async function badge() {
  const { count } = await api('/api/cart');
  byId('cart-link').textContent = `Cart (${count})`;
}
