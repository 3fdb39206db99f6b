/** What a page transfers, as the network sees it: compressed, with headers; pictures of tests apart. */

/** Opens an address and counts: all bytes, and those of the HTML alone. */
export async function weigh(page, address) {
  const session = await page.context().newCDPSession(page);
  const kinds = new Map();
  let bytes = 0;
  let html = 0;
  session.on('Network.responseReceived', ({ requestId, type, response }) => kinds.set(requestId, { type, url: response.url }));
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const asked = kinds.get(requestId);
    // The end of what the page before asked for.
    if (asked === undefined) return;
    const { type, url } = asked;
    if (type === 'Font' || type === 'Media' || new URL(url).pathname.startsWith('/api/files/')) return;
    bytes += encodedDataLength;
    if (type === 'Document') html += encodedDataLength;
  });
  await session.send('Network.enable');
  await page.goto(address, { waitUntil: 'load' });
  await session.detach();
  return { bytes, html };
}
