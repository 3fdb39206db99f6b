/** Addresses without what may be a secret: user names, passwords, values of queries and fragments. */

export const URL_MAX_CHARS = 2_000;

/** The names of the query stay: they tell two calls of one path apart. */
export function withoutQueryValues(address: string): string {
  try {
    const url = new URL(address);
    url.username = '';
    url.password = '';
    url.hash = '';
    const names = [...new Set(url.searchParams.keys())];
    url.search = names.map((name) => `${encodeURIComponent(name)}=redacted`).join('&');
    return url.href.slice(0, URL_MAX_CHARS);
  } catch {
    return address.split('?', 1)[0]!.slice(0, URL_MAX_CHARS);
  }
}

export function withoutQuery(address: string): string {
  return address.split(/[?#]/, 1)[0]!;
}

/** Of every address in the text; a line and column behind it stay. */
export function withoutQueries(text: string): string {
  return text.replace(/(\bhttps?:\/\/[^\s?#]+)[?#]\S*?(?=(?::\d+:\d+)?[),]*(?:\s|$))/g, '$1');
}
