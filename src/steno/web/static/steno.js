// Features of every page: keyboard shortcuts, theme, copying. Pages work without them.
import { on, keyed, typing } from "./keys.js";
import "./palette.js";

const root = document.documentElement;
const keep = (name, value) => { try { value ? localStorage.setItem(name, value) : localStorage.removeItem(name); } catch { /* storage is unavailable */ } };

const THEMES = ["", "light", "dark"];
on("theme", () => {
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "") + 1) % THEMES.length];
  if (next) root.dataset.theme = next; else delete root.dataset.theme;
  keep("steno-theme", next);
  say(`Theme: ${next || "system"}`);
});
on("density", () => {
  const dense = root.dataset.density !== "dense";
  if (dense) root.dataset.density = "dense"; else delete root.dataset.density;
  keep("steno-density", dense ? "dense" : "");
  say(dense ? "Density: dense" : "Density: normal");
});
on("link", () => copy(location.href));
on("keys", () => document.querySelector("dialog.keys")?.showModal());
on("search", () => { const box = document.querySelector(".find input"); box?.focus(); box?.select(); });
on("copy", (button) => copy(button.previousElementSibling?.textContent ?? ""));

export async function copy(text) {
  try { await navigator.clipboard.writeText(text); say("Copied"); } catch { say("Copying failed"); }
}

// A status message, announced by screen readers.
let voice;
export function say(text) {
  if (!voice) {
    voice = document.createElement("p");
    voice.className = "voice";
    voice.setAttribute("role", "status");
    document.body.append(voice);
  }
  voice.textContent = "";
  requestAnimationFrame(() => { voice.textContent = text; });
}

// Rows and steps that can be selected with the keyboard.
export const stops = () => [...document.querySelectorAll("[data-stop]")].filter((each) => each.checkVisibility());
export function here() { return document.querySelector("[data-stop].is-here"); }
export function stand(next) {
  if (!next) return;
  here()?.classList.remove("is-here");
  next.classList.add("is-here");
  next.scrollIntoView({ block: "nearest" });
  (next.querySelector("a[href], summary") ?? next).focus?.({ preventScroll: true });
}
function move(by) {
  const all = stops();
  const at = all.indexOf(here());
  stand(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))]);
}
on("next", () => move(1));
on("previous", () => move(-1));
on("open", () => {
  const stop = here();
  const fold = stop?.matches("details") ? stop : stop?.querySelector("details");
  if (fold) fold.open = !fold.open; else stop?.querySelector("a[href]")?.click();
});
for (const [key, name] of [["/", "search"], ["?", "keys"], ["t", "theme"], ["d", "density"], ["j", "next"], ["k", "previous"], ["o", "open"]]) keyed(key, name);
for (const [key, page] of [["s", 0], ["u", 1], ["f", 2], ["c", 3], ["h", 4]])
  keyed(`g ${key}`, () => document.querySelectorAll(".nav a")[page]?.click());

addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-do]");
  if (button) { event.preventDefault(); on.run(button.dataset.do, button); }
});
// Panels are initially closed on narrow screens.
for (const fold of document.querySelectorAll("details[data-fold]"))
  if (matchMedia(`(max-width: ${Number(fold.dataset.fold)}px)`).matches) fold.open = false;
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && typing(event.target)) event.target.blur();
});
