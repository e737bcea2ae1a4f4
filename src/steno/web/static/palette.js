// Command palette. The selected option is announced to screen readers.
import { on } from "./keys.js";

const dialog = document.querySelector("dialog.palette");
const box = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
let asked = new AbortController();
let waiting = 0;
let shown = null;

const options = () => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];
const chosen = () => list.querySelector("[aria-selected=true]");

function choose(option) {
  chosen()?.setAttribute("aria-selected", "false");
  if (!option) { box.removeAttribute("aria-activedescendant"); return; }
  option.setAttribute("aria-selected", "true");
  box.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const all = options();
  if (!all.length) return;
  const at = all.indexOf(chosen());
  choose(all[(at + by + all.length) % all.length]);
}

async function look() {
  const words = box.value.trim();
  if (words === shown) return;
  asked.abort();
  asked = new AbortController();
  try {
    const answer = await fetch(`/palette?${new URLSearchParams({ q: words })}`, { signal: asked.signal });
    if (!answer.ok) return;
    list.innerHTML = await answer.text();
  } catch (error) {
    if (error.name !== "AbortError") throw error;
    return;
  }
  shown = words;
  list.scrollTop = 0;
  choose(options()[0]);
}

export function open() {
  if (!dialog || dialog.open) { dialog?.close(); return; }
  document.querySelector("dialog[open]")?.close();
  box.value = "";
  shown = null;
  dialog.showModal();
  box.focus();
  look();
}
on("palette", open);

if (dialog) {
  addEventListener("keydown", (event) => {
    const chord = (event.metaKey || event.ctrlKey) && !event.altKey && !event.shiftKey;
    if (chord && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
  });
  box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 60); });
  box.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? (event.ctrlKey ? { n: 1, p: -1 }[event.key] : 0);
    if (by) { event.preventDefault(); move(by); }
    else if (event.key === "Home" || event.key === "End") { event.preventDefault(); choose(options().at(event.key === "Home" ? 0 : -1)); }
    else if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); dialog.close(); }
    else if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(waiting);
      await look();
      chosen()?.click();
    }
  });
  list.addEventListener("pointermove", (event) => { const option = event.target.closest("[role=option]:not([aria-disabled])"); if (option && option !== chosen()) choose(option); });
  // A click outside closes the palette. Close it before an action, so that the action applies to the page.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-do]")) dialog.close();
  });
}
