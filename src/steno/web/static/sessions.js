// Session list: loads further rows while scrolling, and updates live.
import { keyed } from "./keys.js";
import { settle } from "./settle.js";

let list = null;

async function more(link) {
  link.removeAttribute("data-more");
  const address = new URL(link.href);
  address.searchParams.set("part", "rows");
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok) { link.setAttribute("data-more", ""); return; }
  const made = document.createElement("div");
  made.innerHTML = await answer.text();
  if (!link.isConnected) { link.setAttribute("data-more", ""); return; }
  join(made);
  link.parentElement.replaceWith(...made.childNodes);
  watch();
}

// Continue the last group of the previous page. Skip sessions that are already in the list.
function join(made) {
  if (!list) return;
  const held = new Set(rows(list).map((row) => row.dataset.key));
  for (const row of rows(made)) if (held.has(row.dataset.key)) row.remove();
  for (const section of made.querySelectorAll("section[data-group]")) if (!rows(section).length) section.remove();
  const last = [...list.querySelectorAll("section[data-group]")].at(-1);
  const first = made.querySelector("section[data-group]");
  if (!last || !first || last.dataset.group !== first.dataset.group) return;
  last.querySelector("ol").append(...first.querySelectorAll("ol > li"));
  first.remove();
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); more(entry.target); }
}, { rootMargin: "800px" });
function watch() { for (const link of document.querySelectorAll("a[data-more]")) seen.observe(link); }

// Live updates add and remove rows; the selected row keeps its position.
const rows = (box) => [...box.querySelectorAll("li[data-key]")];
const order = (box) => [...box.querySelectorAll("section[data-group]")].map((section) => [section.dataset.group, ...rows(section).map((row) => row.dataset.key)].join(" ")).join("\n");

const headOf = (group) => [...list.querySelectorAll("section[data-group]")].find((each) => each.dataset.group === group).querySelector("header");

// The row to keep in place: focused, selected, hovered, or the first visible one.
function looked() {
  const focus = document.activeElement?.closest?.("#list li[data-key]");
  const found = focus ?? list.querySelector("li[data-key].is-here") ?? list.querySelector("li[data-key]:hover");
  const seen = (row) => { const box = row.getBoundingClientRect(); return box.bottom > 60 && box.top < innerHeight; };
  if (found && seen(found)) return found;
  return scrollY > 40 ? rows(list).find(seen) : null;
}

function refresh({ html, more: others }) {
  const fresh = document.createElement("div");
  fresh.innerHTML = html;
  const at = looked();
  const top = at?.getBoundingClientRect().top;
  const focus = list.contains(document.activeElement) ? document.activeElement : null;
  const held = new Map(rows(list).map((row) => [row.dataset.key, row]));
  const moved = order(fresh) !== order(list);
  for (const next of rows(fresh)) {
    const old = held.get(next.dataset.key);
    held.delete(next.dataset.key);
    if (!old) continue;
    settle(old, next);
    if (moved) next.replaceWith(old);
  }
  if (moved) place(fresh, [...held.values()], others);
  else for (const head of fresh.querySelectorAll("section[data-group] header")) settle(headOf(head.closest("section").dataset.group), head);
  if (focus && document.activeElement !== focus && focus.isConnected) focus.focus({ preventScroll: true });
  if (at?.isConnected) scrollBy({ top: at.getBoundingClientRect().top - top, behavior: "instant" });
}

// Keep rows of later pages. Remove rows that are missing from the new first page. Live sessions are at the
// top, regardless of their rank.
function place(fresh, rest, others) {
  const first = rows(fresh).filter((row) => !row.closest(".livebox"));
  const last = Math.min(...first.map((row) => Number(row.dataset.rank)));
  for (const row of rest) if (!others || Number(row.dataset.rank) > last || row.closest(".livebox")) row.remove();
  const link = list.querySelector(".more-rows");
  const made = [...fresh.children];
  const old = [...list.querySelectorAll("section[data-group]")].filter((section) => rows(section).length);
  for (const section of old) {
    const same = made.find((each) => each.dataset.group === section.dataset.group);
    if (same) same.querySelector("ol").append(...rows(section)); else made.push(section);
  }
  list.replaceChildren(...made, ...(link ? [link] : []));
}

let stream = null;
function listen() {
  if (stream || document.hidden || !list?.dataset.live) return;
  stream = new EventSource(list.dataset.live);
  stream.addEventListener("open", () => { if (list) list.dataset.heard = ""; });
  stream.addEventListener("rows", (event) => refresh(JSON.parse(event.data)));
  stream.addEventListener("error", () => { if (stream?.readyState === EventSource.CLOSED) { hush(); setTimeout(listen, 5000); } });
}
export function hush() { stream?.close(); stream = null; if (list) delete list.dataset.heard; }
// Browsers limit connections per server, so hidden pages close theirs.
document.addEventListener("visibilitychange", () => { if (document.hidden) hush(); else listen(); });
addEventListener("pagehide", hush);
addEventListener("pageshow", listen);

// Call whenever the list on the page is replaced or removed.
export function begin() {
  hush();
  seen.disconnect();
  list = document.getElementById("list");
  watch();
  listen();
}
begin();

keyed("f", () => {
  const fold = document.querySelector("details.facets");
  if (!fold) return;
  fold.open = true;
  fold.querySelector("a")?.focus();
});
