// Applies the theme that was chosen before anything is painted; nothing chosen
// means the system's. And says that scripts run: what they bring has its place
// from the first picture on.
(() => {
  document.documentElement.dataset.scripted = '';
  try {
    const chosen = localStorage.getItem('callboard-theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is switched off: the system's theme is as good as any.
  }
})();
