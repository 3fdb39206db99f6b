// The notifications of the reader: the number in the header follows the stream of all pages, and the
// list is read again when something arrives. Nothing asks for permission before the button for
// notifications on the desktop is used.

const DESKTOP = 'callboard-desktop-notifications';
const MOST = 100;

const bell = document.querySelector('[data-bell]');
const inbox = document.querySelector('[data-inbox]');
const desktop = document.querySelector('[data-desktop]');

function wantsDesktop() {
  try {
    return globalThis.Notification?.permission === 'granted' && localStorage.getItem(DESKTOP) === 'on';
  } catch {
    return false;
  }
}

function showCount(count) {
  const shown = count >= MOST ? `${MOST - 1}+` : String(count);
  const place = bell.querySelector('[data-bell-count]');
  place.textContent = shown;
  place.hidden = count === 0;
  bell.setAttribute('aria-label', count === 0 ? 'Notifications' : `Notifications, ${shown} unread`);
}

/** The list as it is now, in the place of the list that is shown. */
async function refreshList() {
  const answer = await fetch(location.href, { headers: { accept: 'text/html' } }).catch(() => undefined);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-inbox]');
  if (!fresh) return;
  inbox.replaceChildren(...document.importNode(fresh, true).childNodes);
  document.dispatchEvent(new Event('exchanged'));
}

async function showOnDesktop() {
  const answer = await fetch('/api/notifications?unread=true&limit=1').catch(() => undefined);
  if (!answer?.ok) return;
  const [item] = (await answer.json()).items;
  if (!item) return;
  // The same tag in every window shows one message.
  const shown = new Notification(visible(item.headline), { body: visible(item.facts.join('\n')), tag: `callboard-${item.id}` });
  shown.onclick = () => {
    focus();
    location.assign(new URL(item.url).pathname);
  };
}

function followBell() {
  let newest = Number(bell.dataset.newest);
  const heard = ({ type, unread, newest: now }) => {
    if (type !== 'notifications') return;
    showCount(unread);
    const isNew = now > newest;
    newest = Math.max(newest, now);
    if (inbox) refreshList();
    if (isNew && wantsDesktop()) showOnDesktop();
  };
  const stream = sharedStream('/api/stream', bell.dataset.after, heard, () => {});
  const open = () => {
    if (!document.hidden || wantsDesktop()) stream.open();
  };
  document.addEventListener('visibilitychange', () => (document.hidden && !wantsDesktop() ? stream.close() : open()));
  addEventListener('pagehide', stream.close);
  addEventListener('pageshow', open);
  open();
}

function offerDesktop() {
  const show = () => {
    const isOn = wantsDesktop();
    desktop.textContent = isOn ? 'Stop showing on the desktop' : 'Show on the desktop';
    desktop.setAttribute('aria-pressed', String(isOn));
    desktop.hidden = globalThis.Notification === undefined || Notification.permission === 'denied';
  };
  desktop.addEventListener('click', async () => {
    const isOn = wantsDesktop();
    if (!isOn && Notification.permission !== 'granted') await Notification.requestPermission();
    localStorage.setItem(DESKTOP, isOn ? 'off' : 'on');
    show();
  });
  show();
}

if (bell) followBell();
if (desktop) offerDesktop();
// What is opened is read.
inbox?.addEventListener('click', ({ target }) => {
  const link = target.closest('a[data-notification]');
  if (link) fetch(`/api/notifications/${link.dataset.notification}/read`, { method: 'POST', keepalive: true });
});
