/** Makes the first account of a service that asks who is calling, and signs in to it. */
import { randomBytes } from 'node:crypto';

/** The session's cookie, and an API key for what is not a browser. */
export async function firstAdministrator(serviceUrl) {
  const send = (path, body, headers = {}) => fetch(new URL(path, serviceUrl), {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  });
  const created = await send('/api/auth/setup', { username: 'first', password: randomBytes(18).toString('base64url') });
  if (!created.ok) throw new Error(`the first administrator was not made: ${created.status} ${await created.text()}`);
  const cookie = created.headers.getSetCookie().find((set) => set.includes('svc_session')).split(';')[0];
  const key = await send('/api/users/me/api-keys', { name: 'tests' }, { cookie });
  if (!key.ok) throw new Error(`no API key was made: ${key.status} ${await key.text()}`);
  const at = cookie.indexOf('=');
  return { cookie: { name: cookie.slice(0, at), value: cookie.slice(at + 1) }, apiKey: (await key.json()).key };
}
