/**
 * What people did about the history: an outage ignored, a repaired bug resolved, a test set
 * aside, releases marked, a ticket hung on what it is about, a run kept.
 */
import { getJson, send } from './service.mjs';

const DAY_MS = 86_400_000;
const DECISIONS = [
  ['connection', 'ignored', 'Staging was moved to another cluster that morning.'],
  ['total', 'resolved', 'Tax is rounded once, on the total.'],
];
const TICKETS = [
  ['place order', 'https://github.com/teashop/shop/issues/318', 'The order button was reworded'],
  ['suggest', 'https://teashop.atlassian.net/browse/SEARCH-42', 'Suggestions take too long'],
];

const clusters = async () => (await getJson('/api/failure-clusters?limit=100')).items;
const named = (all, word) => all.find(({ signature }) => signature.toLowerCase().includes(word));

export async function decide(projects, now) {
  const ids = new Map((await getJson('/api/projects?limit=50')).items.map(({ name, id }) => [name, id]));
  for (const [word, status, note] of DECISIONS) {
    const cluster = named(await clusters(), word);
    if (cluster) await send('PATCH', `/api/failure-clusters/${cluster.id}/status`, { status, note });
  }
  for (const [word, url, title] of TICKETS) {
    const cluster = named(await clusters(), word);
    if (cluster) await send('POST', '/api/links', { entityType: 'failure_cluster', entityId: cluster.id, url, title });
  }
  for (const { name, markers = [] } of projects) {
    for (const { at, ...marker } of markers) {
      await send('POST', `/api/projects/${ids.get(name)}/markers`, { ...marker, occurredAt: new Date(now - at * DAY_MS).toISOString() });
    }
  }
  const shop = ids.get('shop');
  const { items: [suggests] } = await getJson(`/api/projects/${shop}/test-cases?q=suggests&limit=1`);
  if (suggests) await send('POST', '/api/links', { entityType: 'test_case', entityId: suggests.id, url: TICKETS[1][1], title: TICKETS[1][2] });
  const { items: [green] } = await getJson(`/api/projects/${shop}/test-runs?status=passed&limit=1`);
  if (green) await send('PUT', `/api/test-runs/${green.id}/pin`, {});
  const mobile = ids.get('mobile web');
  const { items: [flaky] } = await getJson(`/api/projects/${mobile}/flaky-tests?limit=1`);
  if (flaky) await send('POST', `/api/projects/${mobile}/quarantine`, { testCaseId: flaky.testCaseId, reason: 'The service worker starts too late on slow machines.' });
}
