// The theme that was chosen on the dashboard, which is the same origin, before
// anything is painted; and the button that chooses another one.
(() => {
  const THEMES = ['system', 'light', 'dark'];
  const KEY = 'callboard-theme';
  const root = document.documentElement;
  root.dataset.scripted = '';

  const chosen = () => root.dataset.theme ?? 'system';

  function apply(theme) {
    if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
    else delete root.dataset.theme;
  }

  function name(button) {
    button.title = `Theme: ${chosen()}`;
    button.setAttribute('aria-label', button.title);
  }

  try {
    apply(localStorage.getItem(KEY));
  } catch {
    // Storage is switched off: the system's theme is as good as any.
  }

  // The button works as soon as it is there: what else the page loads may take longer.
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-theme-switch]');
    if (!button) return;
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    apply(next);
    name(button);
    try {
      if (next === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, next);
    } catch {
      // It holds for this page.
    }
  });
  document.addEventListener('DOMContentLoaded', () => name(document.querySelector('[data-theme-switch]')));
})();
