// Applies the saved theme and density before the first paint.
(() => {
  const kept = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const root = document.documentElement;
  const theme = kept("steno-theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  if (kept("steno-density") === "dense") root.dataset.density = "dense";
})();
