import { byId, calm, say } from '/shop.js';

byId('login').addEventListener('submit', (event) => {
  event.preventDefault();
  calm(async () => {
    const body = JSON.stringify(Object.fromEntries(new FormData(event.target)));
    const response = await fetch('/api/session', { method: 'POST', body });
    if (response.status === 401) say((await response.json()).error);
    else if (!response.ok) throw new Error('Request failed');
    else location.href = '/account';
  });
});
