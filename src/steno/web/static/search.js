// Search while typing, in place of the session list. The URL follows, and going back restores the list.
// Without JavaScript, submitting the form leads to the same page.
import { begin } from "./sessions.js";
import { say, stand, stops } from "./steno.js";
import { on } from "./keys.js";

const box = document.querySelector(".find input");
const main = document.getElementById("main");
const facets = document.getElementById("facets");
const narrowed = document.getElementById("narrowed");
const told = document.getElementById("told");
let asked = new AbortController();
let waiting = 0;
let shown = location.href;
// The session list before the search, with its scroll position.
let left = null;

const wordsOf = (address) => (address.searchParams.get("q") ?? "").trim();

// Return the URL of the first page of results.
function wanted() {
  const address = new URL(location.href);
  for (const name of ["from", "after", "session", "open", "part"]) address.searchParams.delete(name);
  const words = box.value.trim();
  if (words) address.searchParams.set("q", words); else address.searchParams.delete("q");
  return address;
}

function put(filters, content, number) {
  facets.replaceChildren(...filters);
  main.replaceChildren(...content);
  narrowed.textContent = number;
  begin();
}

async function fetched(address) {
  const way = new URL(address);
  way.searchParams.set("part", "page");
  const answer = await fetch(way, { signal: asked.signal, headers: { accept: "text/html" } });
  // An invalid query returns a page with the error.
  if (!answer.ok && answer.status !== 400) throw new Error(`${answer.status}`);
  const made = document.createElement("template");
  made.innerHTML = await answer.text();
  if (!made.content.querySelector("[data-part=main]")) throw new Error(`${answer.status}`);
  return made.content;
}

// Show the page of a URL. Return whether it was shown.
async function show(address) {
  asked.abort();
  asked = new AbortController();
  const words = wordsOf(address);
  const now = new URL(shown);
  if (!wordsOf(now) && words) left = { href: shown, filters: [...facets.childNodes], content: [...main.childNodes], number: narrowed.textContent, top: scrollY };
  try {
    if (left?.href === address.href) {
      put(left.filters, left.content, left.number);
      scrollTo({ top: left.top, behavior: "instant" });
    } else {
      main.setAttribute("aria-busy", "true");
      const made = await fetched(address);
      const filters = made.querySelector("[data-part=facets]");
      put([...filters.childNodes], [...made.querySelector("[data-part=main]").childNodes], filters.dataset.narrowed);
      scrollTo({ top: 0, behavior: "instant" });
    }
  } catch (error) {
    if (error.name !== "AbortError") say("Search failed");
    return false;
  } finally {
    main.removeAttribute("aria-busy");
  }
  shown = address.href;
  document.title = `${words || "Sessions"} · steno`;
  told.textContent = main.querySelector("h1")?.textContent ?? "";
  return true;
}

// One history entry per search, not per typed character.
async function look() {
  clearTimeout(waiting);
  waiting = 0;
  const address = wanted();
  if (address.href === shown && address.href === location.href) return;
  const steps = Boolean(wordsOf(new URL(location.href))) !== Boolean(wordsOf(address));
  if (steps) history.pushState(null, "", address); else history.replaceState(null, "", address);
  await show(address);
}

box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 120); });
box.form.addEventListener("submit", async (event) => { event.preventDefault(); await look(); if (box.value.trim()) stand(stops()[0]); });
box.addEventListener("keydown", async (event) => {
  if (event.isComposing) return;
  if (event.key === "ArrowDown") { event.preventDefault(); if (waiting) await look(); stand(stops()[0]); }
  else if (event.key === "Escape" && box.value) { event.preventDefault(); event.stopPropagation(); box.value = ""; look(); }
});

// Arrow keys move between matches and back to the search box.
main.addEventListener("keydown", (event) => {
  const stop = event.target.closest?.("[data-stop]");
  if (!stop || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
  if (event.key === "Escape" || (event.key === "ArrowUp" && stop === stops()[0])) { event.preventDefault(); stop.classList.remove("is-here"); box.focus(); box.select(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); on.run(event.key === "ArrowDown" ? "next" : "previous"); }
});

addEventListener("popstate", () => {
  clearTimeout(waiting);
  const address = new URL(location.href);
  box.value = wordsOf(address);
  show(address);
});
