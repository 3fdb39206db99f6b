/** The pages of accounts, on a service that asks who is calling and has no accounts yet. */
import { firstAdministrator } from './first-administrator.mjs';

const PEOPLE = [
  { username: 'mira', name: 'Mira Santos', email: 'mira@shop.example', role: 'administrator' },
  { username: 'jonas', name: 'Jonas Weber', email: 'jonas@shop.example', role: 'reporter', isGlobal: true },
  { username: 'aiko', name: 'Aiko Tanaka', role: 'user' },
];

/** What somebody sees before anybody has an account. */
export const beforeAccounts = { setup: { address: '/', status: 401 } };

/** Makes accounts; answers the session of the first one and the pages with somebody to show. */
export async function makeAccounts(url) {
  const { cookie, apiKey } = await firstAdministrator(url);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
  const ids = [];
  for (const person of PEOPLE) {
    const answer = await fetch(new URL('/api/users', url), { method: 'POST', headers, body: JSON.stringify(person) });
    if (!answer.ok) throw new Error(`the account ${person.username} was not made: ${answer.status} ${await answer.text()}`);
    ids.push((await answer.json()).user.id);
  }
  return {
    cookie,
    entrance: {
      login: { address: '/login' },
      'login-refused': { address: '/login?error=account-exists' },
      'login-again': { address: '/login?error=invalid_credentials&next=/projects' },
      reset: { address: `/reset#token=srp_${'a'.repeat(37)}` },
      invitation: { address: `/reset#token=siv_${'a'.repeat(37)}` },
      unsubscribe: { address: `/unsubscribe#token=sun1.${'a'.repeat(37)}` },
      verify: { address: '/verify' },
      'verify-refused': { address: `/verify#token=sve_${'a'.repeat(37)}`, act: (page) => page.getByRole('alert').filter({ hasText: /./ }).waitFor() },
    },
    pages: {
      account: { address: '/settings/account' },
      users: { address: '/settings/users' },
      user: { address: `/settings/users/${ids[1]}` },
      'user-keys': { address: `/settings/users/${ids[1]}/keys` },
      'user-new': { address: '/settings/users', act: (page) => page.getByRole('button', { name: 'New user' }).click() },
      audit: { address: '/settings/audit' },
    },
  };
}
