// Keyboard shortcuts of the files list and the file page.
import { keyed } from "./keys.js";

const click = (what) => document.querySelector(what)?.click();
const line = document.querySelector("ol.line");

if (line) {
  const rows = [...line.querySelectorAll("li[data-stop]")];
  const at = rows.findIndex((row) => row.classList.contains("is-here"));
  rows[at]?.scrollIntoView({ block: "nearest" });
  const go = (by) => rows[at < 0 ? 0 : at + by]?.querySelector("a.whole")?.click();
  keyed("j", () => go(1));
  keyed("k", () => go(-1));
  keyed("o", () => click("[data-open]"));
  keyed("h", () => click("[data-view=before]"));
  keyed("l", () => click("[data-view=after]"));
  keyed("v", () => click("[data-view=diff]"));
}
keyed("f", () => document.querySelector(".within input[type=search]")?.focus());
