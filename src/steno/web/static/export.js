// Exported page: theme, expanding all steps, and expanding them for printing.
(() => {
  const root = document.documentElement;
  const folds = () => document.querySelectorAll("details.step, details.side, details.long, details.sum");
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* storage is unavailable */ } };
  const turns = { "": "dark", dark: "light", light: "" };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (!button) return;
    if (button.dataset.do === "theme") {
      const next = turns[root.dataset.theme ?? ""];
      if (next) root.dataset.theme = next; else delete root.dataset.theme;
      keep("steno-theme", next);
    }
    if (button.dataset.do === "open") {
      const open = !("opened" in button.dataset);
      for (const fold of folds()) fold.open = open;
      if (open) button.dataset.opened = ""; else delete button.dataset.opened;
      button.textContent = open ? "Collapse all steps" : "Expand all steps";
    }
    if (button.dataset.do === "copy" && button.previousElementSibling) {
      navigator.clipboard?.writeText(button.previousElementSibling.textContent);
    }
  });
  let before = [];
  addEventListener("beforeprint", () => {
    before = [...folds()].filter((fold) => !fold.open);
    for (const fold of before) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of before) fold.open = false; });
})();
