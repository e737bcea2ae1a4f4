// Comparison page: opens steps in place and swaps the sides. Without JavaScript, links lead to the same content.
import { say } from "./steno.js";
import { keyed } from "./keys.js";

async function fill(fold) {
  const inside = fold.querySelector(":scope > .in");
  if (!inside || "full" in fold.dataset) return;
  fold.dataset.full = "";
  try {
    const answer = await fetch(fold.dataset.src, { headers: { accept: "text/html" } });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const box = document.createElement("template");
    box.innerHTML = await answer.text();
    inside.append(box.content);
  } catch {
    delete fold.dataset.full;
    say("Loading failed");
  }
}
addEventListener("toggle", (event) => {
  const fold = event.target;
  if (fold instanceof HTMLDetailsElement && fold.open && fold.matches("[data-src]")) fill(fold);
}, true);

keyed("w", () => document.querySelector("[data-swap]")?.click());
