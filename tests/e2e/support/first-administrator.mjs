/** Makes the first account of a service that asks who is calling, unless it did so before, and signs in to it. */
import { createHash } from 'node:crypto';

/** The session's cookie, and an API key for what is not a browser. */
export async function firstAdministrator(serviceUrl) {
  const send = (path, body, headers = {}) => fetch(new URL(path, serviceUrl), {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  });
  const account = { username: 'first', password: createHash('sha256').update(`the first of ${new URL(serviceUrl).origin}`).digest('base64url') };
  let created = await send('/api/auth/setup', account);
  if (created.status === 400) created = await send('/api/auth/login', account);
  if (!created.ok) throw new Error(`the first administrator was not made: ${created.status} ${await created.text()}`);
  const cookie = created.headers.getSetCookie().find((set) => set.includes('svc_session')).split(';')[0];
  const key = await send('/api/users/me/api-keys', { name: 'tests' }, { cookie });
  if (!key.ok) throw new Error(`no API key was made: ${key.status} ${await key.text()}`);
  const at = cookie.indexOf('=');
  return { cookie: { name: cookie.slice(0, at), value: cookie.slice(at + 1) }, apiKey: (await key.json()).key };
}
