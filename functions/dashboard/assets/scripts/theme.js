// Applies the theme that was chosen before anything is painted. Nothing chosen
// means the system's.
(() => {
  try {
    const chosen = localStorage.getItem('callboard-theme');
    if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage is switched off: the system's theme is as good as any.
  }
})();
