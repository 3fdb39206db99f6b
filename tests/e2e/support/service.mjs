/** Reads the service under test over REST: `CALLBOARD_URL`, and `CALLBOARD_API_KEY` where it asks for one. */
import { createHash } from 'node:crypto';

export const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
const apiKey = () => process.env.CALLBOARD_API_KEY;

/** Whether an address is the service, under any of the names this machine has for itself. */
function isOurs(url) {
  const service = new URL(serviceUrl);
  const local = ['localhost', '127.0.0.1'];
  const sameHost = url.hostname === service.hostname || (local.includes(url.hostname) && local.includes(service.hostname));
  return sameHost && url.port === service.port;
}

/** Variables that tell the reporter where to send a run. */
export function reporterEnvironment() {
  return { SERVICE_URL: serviceUrl, ...(apiKey() ? { SERVICE_API_KEY: apiKey() } : {}) };
}

export async function get(path, options = {}) {
  const url = new URL(path, serviceUrl);
  return await fetch(url, { headers: isOurs(url) ? credentials() : {}, ...options });
}

function credentials() {
  return apiKey() ? { authorization: `Bearer ${apiKey()}` } : {};
}

/** Stores a small finished run with files; `files` maps part names to name and bytes. */
export async function upload({ projectName, testCases }, files) {
  const form = new FormData();
  form.set('projectName', projectName);
  form.set('testRun', JSON.stringify({ status: 'passed', startTime: new Date().toISOString(), duration: 1 }));
  if (testCases) form.set('testCases', JSON.stringify(testCases));
  for (const [part, [name, bytes]] of Object.entries(files)) form.set(part, new Blob([bytes]), name);
  const response = await fetch(new URL('/api/test-runs/upload', serviceUrl), { method: 'POST', headers: credentials(), body: form });
  const body = await response.text();
  if (!response.ok) throw new Error(`the upload was answered ${response.status}: ${body.slice(0, 500)}`);
  return JSON.parse(body);
}

export async function getJson(path) {
  const response = await get(path);
  const body = await response.text();
  if (!response.ok) throw new Error(`GET ${path} answered ${response.status}: ${body.slice(0, 500)}`);
  return JSON.parse(body);
}

export async function getBytes(path) {
  const response = await get(path);
  if (!response.ok) throw new Error(`GET ${path} answered ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Every item of a list, page by page. */
export async function getAll(path) {
  const items = [];
  for (let cursor = null; ;) {
    const page = await getJson(cursor === null ? path : `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`);
    items.push(...page.items);
    cursor = page.nextCursor ?? null;
    if (cursor === null) return items;
  }
}

export function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}
