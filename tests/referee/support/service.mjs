/** Reads the service over REST; `CALLBOARD_URL` names it. */
export const serviceUrl = process.env.CALLBOARD_URL?.replace(/\/+$/, '');
if (!serviceUrl) throw new Error('CALLBOARD_URL must name the running service, for instance CALLBOARD_URL=http://127.0.0.1:3000');

export async function getText(path, options) {
  const response = await fetch(new URL(path, serviceUrl), options);
  const body = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${body.slice(0, 500)}`);
  return body;
}

export const getJson = async (path, options) => JSON.parse(await getText(path, options));

/** Every item of a list, page by page. */
export async function getAll(path) {
  const items = [];
  for (let cursor = ''; cursor !== null;) {
    const page = await getJson(`${path}?limit=200${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    items.push(...page.items);
    cursor = page.nextCursor ?? null;
  }
  return items;
}
