// Parts of a page that are asked for when somebody comes near them: the page
// itself, with that part filled in, is the answer. Without scripts each part
// is a link to it.

const pages = new Map();

// Parts with the same address share one request.
function pageAt(address) {
  const read = async () => {
    const answer = await fetch(address, { headers: { accept: 'text/html' } });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), 'text/html') : undefined;
  };
  if (!pages.has(address)) pages.set(address, read());
  return pages.get(address);
}

async function fill(part) {
  const address = part.dataset.later;
  delete part.dataset.later;
  part.setAttribute('aria-busy', 'true');
  try {
    const filled = (await pageAt(address))?.getElementById(part.id);
    // What cannot be had stays a link.
    if (filled) part.replaceChildren(...document.importNode(filled, true).childNodes);
  } catch {
    // The link is still there.
  }
  part.removeAttribute('aria-busy');
}

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    fill(target);
  }
});
for (const part of document.querySelectorAll('[data-later]')) near.observe(part);
