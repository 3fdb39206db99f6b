// Changes of retention: a form with `data-preview` first asks the service what
// the change deletes. A change that keeps less is confirmed in a dialog, with a
// typed word when it deletes many runs.

const RUNS_WITHOUT_WORD = 10;
const WORD = 'delete';
const HOUR_MS = 3_600_000;

const dialog = document.getElementById('shorten-retention');
const number = new Intl.NumberFormat('en-GB');

function counted(count, noun) {
  return `${number.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Decimal units, as everywhere on the pages. */
function size(bytes) {
  const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];
  const unit = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** unit;
  return `${unit === 0 || value >= 100 ? Math.floor(value) : Math.floor(value * 10) / 10} ${UNITS[unit]}`;
}

/** What a preview says is deleted; empty for nothing. */
function deleted(preview) {
  const parts = [
    [preview.runs, 'run'],
    [preview.files, 'file'],
    [preview.evidenceSlices, 'result'],
  ].filter(([count]) => count > 0);
  if (parts.length === 0) return '';
  const words = parts.map(([count, noun]) => (noun === 'result' ? `evidence of ${counted(count, noun)}` : counted(count, noun)));
  const last = words.pop();
  const list = words.length > 0 ? `${words.join(', ')} and ${last}` : last;
  const bytes = preview.bytes > 0 ? ` (${size(preview.bytes)})` : '';
  return `${preview.partial ? 'at least ' : ''}${list}${bytes}`;
}

function capitalised(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** When a change comes into force; empty for immediately. */
function when(preview) {
  const hours = Math.round((new Date(preview.effectiveAt) - Date.now()) / HOUR_MS);
  return hours > 0 ? `in ${counted(hours, 'hour')}` : '';
}

/** What is said once the form is saved. */
function said(preview) {
  const [what, time] = [deleted(preview), when(preview)];
  const words = what ? `${capitalised(what)} will be deleted` : 'The change takes effect';
  return `Saved. ${words} ${time || 'now'}.${time ? ' You can undo this above.' : ''}`;
}

function fill(preview) {
  const [what, time] = [deleted(preview), when(preview)];
  const place = (name) => dialog.querySelector(`[data-${name}]`);
  place('what').textContent = what ? `${capitalised(what)} will be deleted.` : 'No stored data will be deleted yet. Newer data will be, once it is old enough.';
  place('when').textContent = time
    ? `This takes effect ${time}. You can undo it until then; after that, deleted data can't be restored.`
    : "This takes effect immediately and can't be undone.";
  const field = place('word');
  field.hidden = !preview.partial && preview.runs <= RUNS_WITHOUT_WORD;
  const input = field.querySelector('input');
  input.value = '';
  input.required = !field.hidden;
  input.setCustomValidity('');
}

/** Asks whether to go on; resolves to true when somebody confirmed. */
function confirmed(preview) {
  fill(preview);
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'confirm'), { once: true });
  });
}

async function previewOf(form, body) {
  const [method, path] = form.dataset.preview.split(' ');
  const headers = { accept: 'application/json', 'content-type': 'application/json' };
  const response = await fetch(path, { method, headers, body: JSON.stringify(body) });
  if (response.ok) return response.json();
  // What is wrong with the body is said when it is saved.
  if (response.status === 400) return undefined;
  // Nothing is saved before somebody saw what it deletes.
  throw new Error(`The preview answered ${response.status}`);
}

function complain(form, text) {
  const place = form.querySelector('[data-message]');
  place.textContent = text;
  place.dataset.kind = 'error';
  place.hidden = false;
}

async function ask(form, body) {
  const button = form.querySelector('button[type="submit"]');
  // Enter pressed twice asks once.
  if (button.getAttribute('aria-busy') === 'true') return;
  button.setAttribute('aria-busy', 'true');
  try {
    const preview = await previewOf(form, body);
    if (preview?.shortened.length > 0 && !(await confirmed(preview))) return;
    form.dataset.said = preview?.shortened.length > 0 ? said(preview) : 'Saved. Existing data will be re-evaluated.';
    form.dataset.previewed = '';
    form.requestSubmit(button);
  } catch {
    complain(form, 'What this would delete could not be counted, so nothing was saved. Try again in a moment.');
  } finally {
    button.removeAttribute('aria-busy');
  }
}

for (const form of document.querySelectorAll('form[data-preview]')) {
  form.addEventListener('sending', (event) => {
    if ('previewed' in form.dataset) {
      delete form.dataset.previewed;
      return;
    }
    event.preventDefault();
    ask(form, event.detail);
  });
}

dialog?.querySelector('form').addEventListener('submit', (event) => {
  const input = dialog.querySelector('[data-word] input');
  if (!input.required || input.value.trim().toLowerCase() === WORD) return;
  event.preventDefault();
  input.setCustomValidity(`Type ${WORD} to confirm.`);
  input.reportValidity();
});
dialog?.querySelector('[data-word] input').addEventListener('input', (event) => event.target.setCustomValidity(''));
