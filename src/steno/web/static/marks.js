// `x` marks the selected session; `x` on another session compares both.
import { say, here } from "./steno.js";
import { keyed } from "./keys.js";

const KEPT = "steno-compare";
const read = () => { try { return localStorage.getItem(KEPT) ?? ""; } catch { return ""; } };
const keep = (key) => { try { if (key) localStorage.setItem(KEPT, key); else localStorage.removeItem(KEPT); } catch { /* storage is unavailable */ } };
const way = () => document.querySelector("[data-compare]")?.dataset.compare ?? "/compare";

function show() {
  const marked = read();
  for (const row of document.querySelectorAll("[data-key]"))
    row.classList.toggle("is-marked", Boolean(marked) && row.dataset.key === marked);
  const note = document.getElementById("marked");
  if (!note) return;
  note.hidden = !marked;
  const link = note.querySelector("a");
  const to = new URL(link.href);
  to.searchParams.set("a", marked);
  link.href = to;
}

keyed("x", () => {
  const key = here()?.dataset.key;
  if (!key) { say("Select a session first with j and k"); return; }
  const other = read();
  if (other && other !== key) {
    keep("");
    const to = new URL(way(), location.href);
    to.searchParams.set("a", other);
    to.searchParams.set("b", key);
    location.assign(to);
    return;
  }
  keep(other ? "" : key);
  show();
  say(other ? "Mark removed" : "Marked; press x on another session to compare");
});
show();
