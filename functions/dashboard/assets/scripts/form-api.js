// Forms that call the API. A form says which call it is and what happens then:
//   <form method="post" data-api="POST /api/users" data-done="/settings/users/{user.id}">
// Its fields become a JSON object. Errors stand next to their fields; what
// belongs to no field is said at the form. Nothing is sent twice.

const SAID = 'callboard-said';
const KEPT = 'callboard-kept';
const MINUTE_SECONDS = 60;

/** The value of a field as JSON has it; undefined leaves it out. */
function valueOf(field) {
  if (field.type === 'checkbox' && !field.name.endsWith('[]')) return field.checked;
  if (field.type === 'radio' && !field.checked) return undefined;
  const { json } = field.dataset;
  if (json === 'none') return undefined;
  if (json === 'lines') return field.value.split('\n').map((line) => line.trim()).filter(Boolean);
  // What happened, when nothing is said, happened now.
  if (json === 'moment') return (field.value ? new Date(field.value) : new Date()).toISOString();
  const scale = { 'number-or-null': 1, 'seconds-or-null': 1000, 'percent-or-null': 0.01 }[json];
  if (scale) return field.value === '' ? null : Math.round(Number(field.value) * scale * 1000) / 1000;
  if (field.value === '') return json === 'null' ? null : undefined;
  // A choice that clears.
  if (field.value === 'null' && field instanceof HTMLSelectElement) return null;
  if (json === 'number') return Number(field.value);
  if (json === 'boolean') return field.value === 'true';
  if (json === 'days') return new Date(Date.now() + Number(field.value) * 86_400_000).toISOString();
  return field.value;
}

/** Puts a value at the path its name says: `runs.days`. */
function put(body, name, value) {
  const path = name.split('.');
  const last = path.pop();
  const place = path.reduce((inner, part) => (inner[part] ??= {}), body);
  place[last] = value;
}

/** A name ending in [] is a list of ids, or of words: a list that is switched off is left out, one without a choice is empty. */
function bodyOf(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.matches(':disabled') || field.type === 'submit') continue;
    if (field.name.endsWith('[]')) {
      const name = field.name.slice(0, -2);
      if (at(body, name) === undefined) put(body, name, []);
      if (field.checked) at(body, name).push(field.dataset.json === 'word' ? field.value : Number(field.value));
      continue;
    }
    const value = valueOf(field);
    if (value !== undefined) put(body, field.name, value);
  }
  for (const list of form.querySelectorAll('[data-list]')) {
    if (!list.closest('fieldset[disabled]') && at(body, list.dataset.list) === undefined) put(body, list.dataset.list, []);
  }
  return body;
}

function messageAt(form) {
  return form.querySelector('[data-message]');
}

function say(form, text, kind) {
  const place = messageAt(form);
  place.textContent = visible(text);
  place.dataset.kind = kind;
  place.hidden = text === '';
}

function forget(field) {
  const id = `${field.id}-error`;
  document.getElementById(id)?.remove();
  field.removeAttribute('aria-invalid');
  const others = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((other) => other && other !== id);
  if (others.length > 0) field.setAttribute('aria-describedby', others.join(' '));
  else field.removeAttribute('aria-describedby');
}

function complain(field, text) {
  forget(field);
  const error = document.createElement('p');
  error.className = 'field-error';
  error.id = `${field.id}-error`;
  error.textContent = visible(text);
  (field.closest('.form-field') ?? field).append(error);
  field.setAttribute('aria-invalid', 'true');
  field.setAttribute('aria-describedby', `${field.getAttribute('aria-describedby') ?? ''} ${error.id}`.trim());
}

function fieldNamed(form, name) {
  const found = form.elements.namedItem(name);
  return found instanceof HTMLElement && found.id && found.type !== 'hidden' ? found : null;
}

/** Which fields an error is about, with the sentence for each. */
function complaints(error) {
  const { field, fields, issues } = error.data ?? {};
  if (issues) return issues.map(({ path, message }) => [String(path).replace(/^[/.]/, ''), message]);
  if (fields) return fields.map((name) => [name, 'Required.']);
  if (field) return [[field, error.message]];
  const CODES = { username_taken: 'username', name_taken: 'username', email_taken: 'email' };
  return CODES[error.code] ? [[CODES[error.code], error.message]] : [];
}

/** Refusals that one may have to ask somebody about. */
const WITH_REQUEST = new Set([403, 404, 409]);

function sentence(response, error) {
  if (response.status === 429) {
    const seconds = Number(response.headers.get('retry-after')) || MINUTE_SECONDS;
    const wait = seconds < 2 * MINUTE_SECONDS ? `${seconds} seconds` : `${Math.ceil(seconds / MINUTE_SECONDS)} minutes`;
    return `Too many attempts. Try again in ${wait}.`;
  }
  if (error.code === 'authentication_required') return 'You are signed out. Reload this page to sign in again; nothing was changed.';
  // These say what to do, and our log knows no more.
  if (error.code === 'upstream_failed' || error.code === 'not_configured') return error.message;
  const request = response.headers.get('x-request-id');
  const words = error.message ?? `The service answered ${response.status}. Nothing was changed.`;
  if (!request || !WITH_REQUEST.has(response.status) && response.status < 500) return words;
  return `${words}${response.status >= 500 ? ' What you typed is still here.' : ''} Request ${request}.`;
}

/** The sentence of the API with the field called what the form calls it. */
function inWordsOf(form, field, name, text) {
  const label = form.querySelector(`label[for="${CSS.escape(field.id)}"]`)?.textContent.trim();
  return label && text.startsWith(`${name} `) ? `${label}${text.slice(name.length)}` : text;
}

function refuse(form, response, error) {
  const placed = complaints(error).map(([name, text]) => [fieldNamed(form, name), name, text]).filter(([field]) => field);
  for (const [field, name, text] of placed) complain(field, inWordsOf(form, field, name, text));
  if (placed.length > 0) {
    placed[0][0].focus();
    return;
  }
  say(form, sentence(response, error), 'error');
  const again = form.querySelector('[data-again]');
  if (again && response.status === 401) {
    again.focus();
    again.select();
  }
}

/** The value at a path of an answer: `user.id`. */
function at(answer, path) {
  return path.split('.').reduce((value, key) => value?.[key], answer);
}

/** Shows what is shown once, in the place of the form. */
function show(form, answer) {
  const place = document.getElementById(form.dataset.shows);
  for (const slot of place.querySelectorAll('[data-value]')) slot.textContent = visible(at(answer, slot.dataset.value));
  for (const part of place.querySelectorAll('[data-if]')) part.hidden = !at(answer, part.dataset.if);
  for (const part of place.querySelectorAll('[data-unless]')) part.hidden = Boolean(at(answer, part.dataset.unless));
  form.hidden = true;
  place.hidden = false;
  place.querySelector('[tabindex]')?.focus();
}

/** The forms with the address of a call, whatever they do there: one may ask for the opposite after it was sent. */
function formsOf(path) {
  return [...document.querySelectorAll('form[data-api]')].filter((form) => form.dataset.api.split(' ')[1] === path);
}

/** Where to find a form again once the page was loaded again: several may call the same. */
function placeOf(form) {
  const path = form.dataset.api.split(' ')[1];
  return { path, at: formsOf(path).indexOf(form) };
}

function isChanged(field) {
  if (!field.id || !field.name || field.type === 'password' || field.type === 'file') return false;
  if (field instanceof HTMLSelectElement) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  if (field.type === 'checkbox' || field.type === 'radio') return field.checked !== field.defaultChecked;
  return field.type !== 'hidden' && field.type !== 'submit' && field.value !== field.defaultValue;
}

/** What was typed into the other forms of a page that is loaded again, so that saving one of them loses nothing. */
function keepOthers(form) {
  const others = [...document.querySelectorAll('form[data-api]')].filter((other) => other !== form);
  const fields = others.flatMap((other) => [...other.elements]).filter(isChanged);
  const kept = fields.map((field) => [field.id, field.type === 'checkbox' || field.type === 'radio' ? field.checked : field.value]);
  if (kept.length > 0) sessionStorage.setItem(KEPT, JSON.stringify({ page: location.pathname, kept }));
}

function restoreOthers() {
  const stored = sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  const { page, kept } = JSON.parse(stored ?? '{}');
  if (page !== location.pathname) return;
  for (const [id, value] of kept) {
    const field = document.getElementById(id);
    if (!field?.form?.dataset.api) continue;
    if (typeof value === 'boolean') field.checked = value;
    else field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    field.dispatchEvent(new Event('change', { bubbles: true }));
  }
}

/** The call that undoes what a form did: `data-undo` is its address, `data-undone` the page to show then. */
function undoOf(form, answer) {
  const { undo, undone } = form.dataset;
  if (!undo || !answer.receipt?.restorableUntil) return undefined;
  return { path: undo.replace(/\{([\w.]+)\}/g, (_, path) => encodeURIComponent(at(answer, path))), done: undone };
}

/** A button beside what was said that undoes it. */
function offerUndo({ path, done }) {
  const form = document.createElement('form');
  Object.assign(form.dataset, { api: `POST ${path}`, done, said: 'Restored.' });
  const button = Object.assign(document.createElement('button'), { type: 'submit', className: 'button button-small', textContent: 'Restore' });
  const message = Object.assign(document.createElement('span'), { hidden: true });
  message.dataset.message = '';
  form.append(button, message);
  return form;
}

/** What is said after the page has been loaded again. */
function leave(form, answer) {
  const { said, done } = form.dataset;
  const words = [said, ...(answer.warnings ?? [])].filter(Boolean).join(' ');
  const isReload = done === 'reload';
  if (words) sessionStorage.setItem(SAID, JSON.stringify({ words, place: isReload ? placeOf(form) : undefined, undo: undoOf(form, answer) }));
  if (isReload) {
    keepOthers(form);
    location.reload();
    return;
  }
  const target = done.replace(/\{([\w.]+)\}/g, (_, path) => encodeURIComponent(at(answer, path)));
  // Going back must not show what was deleted.
  if (form.dataset.api.startsWith('DELETE ')) location.replace(target);
  else location.assign(target);
}

/** Brings an element into view, again once the browser has restored the scroll position of a reloaded page. */
function bringIntoView(element) {
  const scroll = () => element.scrollIntoView({ block: 'nearest' });
  scroll();
  const after = () => requestAnimationFrame(() => requestAnimationFrame(scroll));
  if (document.readyState === 'complete') after();
  else addEventListener('load', after, { once: true });
}

/** Says what happened where it was asked for, or else at the top, and brings it into view. */
function sayWhatHappened() {
  const stored = sessionStorage.getItem(SAID);
  sessionStorage.removeItem(SAID);
  const { words, place, undo } = JSON.parse(stored ?? '{}');
  if (!words) return;
  const form = place && formsOf(place.path)[place.at];
  const top = document.getElementById('said');
  if (form?.checkVisibility?.() && messageAt(form)) {
    say(form, words, 'done');
    form.querySelector('button[type="submit"]')?.focus({ preventScroll: true });
    bringIntoView(messageAt(form));
  } else if (top) {
    top.textContent = visible(words);
    if (undo) {
      top.append(offerUndo(undo));
      setUp();
    }
    top.hidden = false;
    top.focus({ preventScroll: true });
    bringIntoView(top);
  }
}

async function send(form) {
  const [method, path] = form.dataset.api.split(' ');
  const asked = bodyOf(form);
  const hasBody = method !== 'GET' && (method !== 'DELETE' || Object.keys(asked).length > 0);
  const response = await fetch(path, {
    method,
    headers: { accept: 'application/json', ...(hasBody ? { 'content-type': 'application/json' } : {}) },
    body: hasBody ? JSON.stringify(asked) : undefined,
  });
  return [response, await response.json().catch(() => ({}))];
}

/** A form that is busy sends nothing, and its buttons say so. */
function setBusy(form, isBusy) {
  const marks = [[form, 'aria-busy'], ...[...form.querySelectorAll('button[type="submit"]')].map((button) => [button, 'aria-disabled'])];
  for (const [element, name] of marks) {
    if (isBusy) element.setAttribute(name, 'true');
    else element.removeAttribute(name);
  }
}

async function submit(form) {
  if (form.getAttribute('aria-busy') === 'true') return;
  // Whoever listens may hold the call back to ask first, and submit the form again.
  if (!form.dispatchEvent(new CustomEvent('sending', { detail: bodyOf(form), cancelable: true }))) return;
  for (const field of form.querySelectorAll('[aria-invalid]')) forget(field);
  say(form, '', '');
  setBusy(form, true);
  let isLeaving = false;
  try {
    const [response, answer] = await send(form);
    if (!response.ok) {
      refuse(form, response, answer);
      form.dispatchEvent(new CustomEvent('refused', { detail: response.status }));
    } else if (answer.success === false) say(form, answer.error, 'error');
    else if (form.dataset.shows) show(form, answer);
    else if (form.dataset.done) {
      leave(form, answer);
      // Until the next page is there, another click sends nothing.
      isLeaving = true;
    } else {
      say(form, form.dataset.says ? at(answer, form.dataset.says) : form.dataset.said ?? 'Saved.', 'done');
      form.dispatchEvent(new CustomEvent('done', { detail: answer }));
    }
  } catch {
    say(form, 'The service cannot be reached. Check the connection and try again; nothing was changed.', 'error');
  } finally {
    if (!isLeaving) setBusy(form, false);
  }
}

// A page that the browser had kept, and shows again when one goes back, can be used again.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) for (const form of document.querySelectorAll('form[data-api][aria-busy]')) setBusy(form, false);
});

/** A demo refuses all that is sent but signing in and out. */
function isServed(form) {
  return !('demo' in document.documentElement.dataset) || /\/api\/auth\/log(in|out)$/.test(form.dataset.api);
}

/** Forms that came with a newer part of the page are set up as those that were there. */
function setUp() {
  for (const form of document.querySelectorAll('form[data-api]:not([data-ready])')) {
    form.dataset.ready = '';
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      submit(form);
    });
    for (const button of form.querySelectorAll('button[type="submit"]')) button.disabled = !isServed(form);
  }
}

setUp();
document.addEventListener('exchanged', setUp);
restoreOthers();
sayWhatHappened();
