// Pictures of an attempt at their full size, over the page they belong to:
// before and after are one key apart. A click with a key held, or without this
// script, opens a picture in a new tab.

const dialog = document.getElementById('pictures');
const links = [...document.querySelectorAll(':is(.shots a, a.thumb):has(> img)')];
const picture = dialog.querySelector('img');
let at = 0;

function show(index) {
  at = (index + links.length) % links.length;
  const link = links[at];
  const { src, alt } = link.querySelector('img');
  Object.assign(picture, { src, alt });
  dialog.querySelector('[data-name]').textContent = alt;
  dialog.querySelector('[data-place]').textContent = links.length > 1 ? `${at + 1} of ${links.length}` : '';
  dialog.querySelector('[data-own-tab]').href = link.href;
  if (!dialog.open) dialog.showModal();
}

for (const [index, link] of links.entries()) {
  link.addEventListener('click', (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    show(index);
  });
}
for (const button of dialog.querySelectorAll('[data-step]')) {
  button.hidden = links.length < 2;
  button.addEventListener('click', () => show(at + Number(button.dataset.step)));
}
dialog.addEventListener('keydown', (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || links.length < 2) return;
  event.preventDefault();
  show(at + step);
});
