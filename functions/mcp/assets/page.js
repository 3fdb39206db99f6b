/** Copies what stands in a block, and tries the endpoint. A typed key stays in the page. */

/** Without https browsers have no clipboard for pages, but most copy what is selected. */
async function toClipboard(block) {
  if (navigator.clipboard) return navigator.clipboard.writeText(block.textContent.trim());
  getSelection().selectAllChildren(block);
  if (!document.execCommand('copy')) throw new Error('nothing was copied');
  return getSelection().removeAllRanges();
}

for (const button of document.querySelectorAll('[data-copy]')) {
  const block = button.previousElementSibling;
  const name = (word) => {
    button.title = word;
    button.setAttribute('aria-label', `${word}: ${block.getAttribute('aria-label')}`);
  };
  button.addEventListener('click', async () => {
    try {
      await toClipboard(block);
      button.dataset.state = 'copied';
      name('Copied');
    } catch {
      // Some browsers refuse even that: select the text instead.
      button.dataset.state = 'refused';
      getSelection().selectAllChildren(block);
      name('Selected; copy it with the keyboard');
    }
    setTimeout(() => {
      delete button.dataset.state;
      name('Copy');
    }, 2000);
  });
}

const form = document.querySelector('form');
const outcome = form.querySelector('output');
const submit = form.querySelector('button');

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
  submit.disabled = true;
  outcome.textContent = 'Asking…';
  try {
    const { serverInfo, protocolVersion } = await connect(form.elements.namedItem('key')?.value.trim());
    outcome.textContent = `It works: ${serverInfo.title} ${serverInfo.version}, protocol ${protocolVersion}.`;
  } catch (error) {
    outcome.textContent = `It does not work: ${error.message}`;
  } finally {
    submit.disabled = false;
  }
});
