// Long lists to choose from: a field narrows what is shown, and asks the
// service for what is not on the page. What is chosen always stays.

const WAIT_MS = 200;

function shownCount(chooser) {
  return [...chooser.querySelectorAll('[data-list] > li')].filter((row) => !row.hidden).length;
}

function count(chooser) {
  const chosen = chooser.querySelectorAll('[data-list] input:checked').length;
  chooser.querySelector('[data-chosen]').textContent = `${chosen} selected`;
}

function narrow(chooser, text) {
  const wanted = text.trim().toLocaleLowerCase();
  for (const row of chooser.querySelectorAll('[data-list] > li')) {
    row.hidden = wanted !== '' && !row.textContent.toLocaleLowerCase().includes(wanted);
  }
  chooser.querySelector('[data-none]').hidden = shownCount(chooser) > 0;
}

/** Adds what the service found and the page does not have. */
function add(chooser, items) {
  const list = chooser.querySelector('[data-list]');
  const known = new Set([...list.querySelectorAll('input')].map((input) => input.value));
  const template = chooser.querySelector('template').content;
  for (const item of items) {
    if (known.has(String(item.id)) || (item.role !== undefined && item.role === chooser.dataset.except)) continue;
    const row = template.cloneNode(true);
    const input = row.querySelector('input');
    input.value = item.id;
    for (const place of row.querySelectorAll('[data-from]')) place.textContent = visible(item[place.dataset.from]);
    list.append(row);
  }
}

async function ask(chooser, text, signal) {
  const response = await fetch(`${chooser.dataset.chooser}${encodeURIComponent(text)}`, { headers: { accept: 'application/json' }, signal });
  if (response.ok) add(chooser, (await response.json()).items);
}

function setUp(chooser) {
  const field = chooser.querySelector('[type="search"]');
  let waiting;
  let asking;
  field.closest('.field').hidden = false;
  field.addEventListener('input', () => {
    narrow(chooser, field.value);
    clearTimeout(waiting);
    asking?.abort();
    if (field.value.trim() === '') return;
    waiting = setTimeout(async () => {
      asking = new AbortController();
      try {
        await ask(chooser, field.value.trim(), asking.signal);
        narrow(chooser, field.value);
      } catch {
        // The next letter asks again; what is on the page stays usable.
      }
    }, WAIT_MS);
  });
  // Enter narrows; it does not send the form around the field.
  field.addEventListener('keydown', (event) => { if (event.key === 'Enter') event.preventDefault(); });
  chooser.addEventListener('change', () => count(chooser));
  count(chooser);
}

/** A choice that switches a part of its form on or off. */
function setUpSwitch(part) {
  const form = part.closest('form');
  const apply = () => {
    const field = form.elements.namedItem(part.dataset.when);
    const value = field instanceof RadioNodeList || field.type !== 'checkbox' ? field.value : String(field.checked);
    const isOn = part.dataset.is.split(' ').includes(value);
    part.hidden = !isOn;
    part.disabled = !isOn;
  };
  form.addEventListener('change', apply);
  apply();
}

for (const chooser of document.querySelectorAll('[data-chooser]')) setUp(chooser);
for (const part of document.querySelectorAll('fieldset[data-when]')) setUpSwitch(part);
