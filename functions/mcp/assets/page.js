/** Copies what stands in a block, and tries the endpoint. A typed key stays in the page. */

for (const block of document.querySelectorAll('pre')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trim());
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = 'Selected';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  const row = document.createElement('div');
  row.className = 'copied';
  row.append(button);
  block.after(row);
}

const form = document.querySelector('form');
const outcome = form.querySelector('output');
const button = form.querySelector('button');

/** What the endpoint answers to somebody who connects. */
async function connect(key) {
  const headers = { 'content-type': 'application/json' };
  if (key) {
    headers.authorization = `Bearer ${key}`;
  }
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'setup page', version: '1' },
  };
  const response = await fetch(location.pathname, {
    method: 'POST',
    credentials: 'omit',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  const answer = await response.json();
  if (!response.ok || !answer.result) {
    throw new Error(answer.message ?? answer.error?.message ?? `The answer was ${response.status}.`);
  }
  return answer.result;
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  button.disabled = true;
  outcome.textContent = 'Asking…';
  try {
    const { serverInfo, protocolVersion } = await connect(form.elements.namedItem('key')?.value.trim());
    outcome.textContent = `It works: ${serverInfo.title} ${serverInfo.version}, protocol ${protocolVersion}.`;
  } catch (error) {
    outcome.textContent = `It does not work: ${error.message}`;
  } finally {
    button.disabled = false;
  }
});
