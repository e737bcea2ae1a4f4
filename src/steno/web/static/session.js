// Session page: opens steps in place, loads folded turns, follows a live session. Without JavaScript,
// links lead to the same content.
import { say, copy, here, stand, stops } from "./steno.js";
import { on, keyed } from "./keys.js";
import { settle, children } from "./settle.js";

const $ = (what, inside = document) => inside.querySelector(what);
const $$ = (what, inside = document) => [...inside.querySelectorAll(what)];
const sess = () => $(".sess");
const turns = () => $$(".turns > .turn[data-turn]");
const made = (html) => { const box = document.createElement("template"); box.innerHTML = html; return box.content; };

async function ask(way) {
  const answer = await fetch(way, { headers: { accept: "text/html" } });
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer.text();
}

// Keep open steps and display options in the URL.
function address(change) {
  const now = new URL(location.href);
  change(now.searchParams);
  history.replaceState(history.state, "", now);
}
function remember() {
  const open = $$(".step[open][data-place]").map((each) => each.dataset.place).slice(0, 60);
  address((query) => { if (open.length) query.set("open", open.join(",")); else query.delete("open"); });
}

// Load steps, records and branches when they are opened.
async function fill(fold) {
  const inside = $(":scope > .in", fold);
  const way = fold.dataset.src ?? fold.dataset.side;
  if (!inside || !way || "full" in fold.dataset) return;
  fold.dataset.full = "";
  const kept = inside.innerHTML;
  const slow = setTimeout(() => { inside.innerHTML = '<div class="bone"></div>'; }, 300);
  try {
    const text = await ask(way);
    clearTimeout(slow);
    if (fold.dataset.side) inside.replaceChildren(...($(".side > .in", made(text))?.childNodes ?? []));
    else if (fold.matches(".rec")) { inside.innerHTML = kept; inside.append(made(text)); }
    else inside.replaceChildren(made(text));
  } catch {
    clearTimeout(slow);
    inside.innerHTML = kept;
    delete fold.dataset.full;
    say("Loading failed");
  }
}
addEventListener("toggle", (event) => {
  const fold = event.target;
  if (!(fold instanceof HTMLDetailsElement) || !fold.matches("[data-src], [data-side]")) return;
  if (fold.open) fill(fold);
  if (fold.matches(".step")) remember();
}, true);

// Replace a row of folded turns by the turns.
async function unfold(row) {
  const fold = row.closest(".fold");
  if (!fold || fold.classList.contains("busy")) return [];
  fold.classList.add("busy");
  try {
    const content = made(await ask(row.dataset.src));
    // Remove duplicate compactions; one within a turn replaces the one next to the row.
    for (const seam of $$(".seam[id]", content)) {
      const old = document.getElementById(seam.id);
      if (old) (seam.parentNode === content ? seam : old).remove();
    }
    const all = [...content.children];
    fold.replaceWith(content);
    watch();
    return all;
  } catch {
    fold.classList.remove("busy");
    say("Loading failed");
    return [];
  }
}
addEventListener("click", async (event) => {
  const row = event.target.closest?.("a.foldrow[data-src]");
  if (row && !event.metaKey && !event.ctrlKey && !event.shiftKey) {
    event.preventDefault();
    const [first] = await unfold(row);
    if (first?.dataset.turn) { pinned = first; at(first); }
    return;
  }
  // Open other views of a step in place.
  const door = event.target.closest?.("a[data-stays]");
  const body = door?.closest(".step > .in, .rec > .in");
  if (body && !event.metaKey && !event.ctrlKey && !event.shiftKey) {
    event.preventDefault();
    const way = new URL(door.href);
    way.searchParams.set("part", "1");
    const foot = $(":scope > .recfoot", body);
    ask(way).then((html) => body.replaceChildren(...(foot ? [foot] : []), made(html))).catch(() => say("Loading failed"));
    return;
  }
  const toggle = event.target.closest?.("[data-toggle]");
  if (toggle) { event.preventDefault(); flip(toggle); return; }
  const row2 = event.target.closest?.(".outline a[data-t], .jump a");
  if (row2 && row2.dataset.t) {
    const turn = document.getElementById(`t${row2.dataset.t}`);
    if (turn) { event.preventDefault(); jump(turn); address((query) => query.set("turn", row2.dataset.t)); }
  }
});
function flip(toggle) {
  const name = toggle.dataset.toggle;
  const off = sess().dataset[name] !== "off";
  if (off) sess().dataset[name] = "off"; else delete sess().dataset[name];
  toggle.setAttribute("aria-pressed", String(!off));
  address((query) => { if (off) query.set(name, "off"); else query.delete(name); });
  say(`${toggle.textContent.trim()} ${off ? "hidden" : "shown"}`);
}

// The current turn: the one at the top of the visible part.
let current = null;
function at(turn) {
  if (!turn || turn === current) return;
  current?.classList.remove("is-at");
  current = turn;
  turn.classList.add("is-at");
  const number = turn.dataset.turn;
  for (const row of $$(".outline a[aria-current]")) row.removeAttribute("aria-current");
  const row = number && $(`.outline a[data-t="${CSS.escape(number)}"]`);
  if (row) {
    row.setAttribute("aria-current", "true");
    const panel = $(".panel");
    if (panel && panel.scrollHeight > panel.clientHeight && getComputedStyle(panel).position === "sticky") {
      const top = row.offsetTop, seen = panel.scrollTop;
      if (top > seen + panel.clientHeight - 40 && seen > 0) panel.scrollTop = top - panel.clientHeight / 2;
    }
  }
  for (const link of $$("[data-detail]")) {
    const way = new URL(link.href);
    if (number && number !== "1") { way.searchParams.set("turn", number); way.hash = `t${number}`; }
    else { way.searchParams.delete("turn"); way.hash = ""; }
    link.href = way;
  }
}
// The target of a jump is the current turn, even if the page is too short to scroll it to the top.
let pinned = null;
function jump(turn) { pinned = turn; turn.scrollIntoView(); at(turn); }
for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => { pinned = null; }, { passive: true });
const inView = (turn) => { const box = turn.getBoundingClientRect(); return box.bottom > 60 && box.top < innerHeight - 30; };
let watcher, loader;
function watch() {
  watcher?.disconnect();
  loader?.disconnect();
  watcher = new IntersectionObserver(() => { seen(); }, { rootMargin: "-100px 0px -60% 0px" });
  for (const turn of turns()) watcher.observe(turn);
  // Load the row after the last full turn when it comes into view; other rows load on click.
  loader = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { loader.unobserve(entry.target); unfold($(".foldrow", entry.target)); }
  }, { rootMargin: "0px 0px 400px 0px" });
  for (const fold of $$(".turns > .fold")) if (fold.dataset.first && fold.previousElementSibling?.matches(".turn[data-turn], .off")) loader.observe(fold);
}
function seen() {
  if (pinned?.isConnected && inView(pinned)) { at(pinned); frame(); return; }
  pinned = null;
  const all = turns();
  const top = innerHeight * 0.35;
  const found = all.filter((turn) => turn.getBoundingClientRect().top <= top).at(-1) ?? all[0];
  at(found);
  frame();
}
function frame() {
  const map = $(".map svg"), view = map && $(".view", map);
  if (!view) return;
  const starts = map.dataset.turns.split(",").map(Number);
  const shown = turns().filter(inView);
  if (!shown.length) return;
  const first = Number(shown[0].dataset.turn), last = Number(shown.at(-1).dataset.turn);
  const top = starts[first - 1] ?? 0, end = starts[last] ?? starts.at(-1);
  view.setAttribute("y", top);
  view.setAttribute("height", Math.max(2, end - top));
}
let waiting = false;
addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; seen(); });
}, { passive: true });
addEventListener("click", (event) => {
  const map = event.target.closest?.(".map svg");
  if (!map) return;
  const box = map.getBoundingClientRect(), starts = map.dataset.turns.split(",").map(Number);
  const y = (event.clientY - box.top) / box.height * map.viewBox.baseVal.height;
  go(Math.max(1, starts.slice(0, -1).filter((start) => start <= y).length));
});
function go(number) {
  const turn = document.getElementById(`t${number}`);
  if (turn) { jump(turn); address((query) => query.set("turn", number)); return; }
  const way = new URL(location.href);
  way.searchParams.set("turn", number);
  way.searchParams.delete("open");
  way.hash = `t${number}`;
  location.assign(way);
}

// Keys
function turnBy(by) {
  const all = turns();
  const place = all.indexOf(current);
  const next = all[place + by];
  if (next) { jump(next); stand(next.querySelector("[data-stop]") ?? next); return; }
  const fold = by > 0 ? all.at(-1)?.nextElementSibling : all[0]?.previousElementSibling;
  const row = fold && $(".foldrow", fold);
  if (row) unfold(row).then((all) => { const turn = all.filter((each) => each.dataset.turn).at(by > 0 ? 0 : -1); if (turn) jump(turn); });
}
keyed("J", () => turnBy(1));
keyed("K", () => turnBy(-1));
keyed("O", () => {
  const turn = here()?.closest(".turn") ?? current;
  if (!turn) return;
  const folds = $$(".step", turn).filter((each) => !each.parentElement.closest(".step"));
  const open = folds.some((each) => !each.open);
  for (const fold of folds) fold.open = open;
});
keyed("e", () => {
  const all = stops();
  const from = all.indexOf(here());
  const next = all.slice(from + 1).find((each) => each.matches(".failed") || Number(each.closest(".fold")?.dataset.errors));
  if (!next) { say("No more errors"); return; }
  if (next.matches(".foldrow")) unfold(next).then((all) => stand(all.map((each) => $(".step.failed", each)).find(Boolean)));
  else stand(next);
});
for (const name of ["abandoned"]) keyed(name[1], () => flip($(`[data-toggle="${name}"]`)));
keyed("p", () => { const off = sess()?.classList.toggle("no-panel"); const panel = $(".panel"); if (panel) panel.open = !off; });
["prompts", "answers", "steps", "everything"].forEach((name, place) => keyed(String(place + 1), () => $(`[data-detail="${name}"]`)?.click()));
keyed("y", () => {
  const stop = here(), turn = stop?.closest(".turn[data-turn]") ?? current;
  const way = new URL(turn?.dataset.href ?? location.href, location.href);
  if (stop?.dataset.place) way.searchParams.set("open", stop.dataset.place);
  copy(way.href);
});
keyed("r", () => {
  const way = here()?.dataset.raw ?? current?.dataset.raw ?? $('.sbar a[aria-label="All records"]')?.href;
  if (way) location.assign(way);
});
keyed("[", () => $('a[rel="prev"]')?.click());
keyed("]", () => $('a[rel="next"]')?.click());
// `x` marks the session; `x` on another session compares both.
const KEPT = "steno-compare";
keyed("x", () => {
  const key = sess()?.dataset.key;
  if (!key) return;
  let other = "";
  try { other = localStorage.getItem(KEPT) ?? ""; } catch { /* storage is unavailable */ }
  if (other && other !== key) {
    try { localStorage.removeItem(KEPT); } catch { /* storage is unavailable */ }
    const way = new URL(sess().dataset.compare, location.href);
    way.searchParams.set("a", other);
    way.searchParams.set("b", key);
    location.assign(way);
    return;
  }
  try { if (other) localStorage.removeItem(KEPT); else localStorage.setItem(KEPT, key); } catch { /* storage is unavailable */ }
  say(other ? "Mark removed" : "Marked; press x on another session to compare");
});

// Live updates keep the scroll position.
let stream = null, following = false, lastAt = "";
function take(data) {
  const list = $(".turns");
  const content = made(data.html);
  const first = document.getElementById(`t${data.first}`);
  const before = document.getElementById(`t${data.first - 1}`);
  if (!first && !before && data.first > 1) { $(".sess").dataset.more = data.total; if (following) go(data.total); return; }
  let last = first ? first.previousElementSibling : list.lastElementChild;
  while (last && last.matches(".seam") && content.firstElementChild?.matches(".seam")) last = last.previousElementSibling;
  for (const next of [...content.children]) {
    const old = next.id && document.getElementById(next.id);
    if (old) { settle(old, next); last = old; }
    else { if (last) last.after(next); else list.prepend(next); last = next; }
  }
  for (const turn of turns()) if (Number(turn.dataset.turn) > data.total) turn.remove();
  watch();
  refreshPanel();
  if (following) end();
}
function end() { scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" }); }
let panelTimer = 0;
function refreshPanel() {
  if (panelTimer) return;
  panelTimer = setTimeout(async () => {
    panelTimer = 0;
    const box = $("#panel");
    const way = sess()?.dataset.live?.replace("/live", "/panel");
    if (!box || !way || document.hidden) return;
    try { settleInto(box, await ask(way)); } catch { /* the next change retries */ }
  }, 3000);
}
function settleInto(box, html) {
  const fresh = box.cloneNode(false);
  fresh.append(made(html));
  const found = $("#p-find > div", box), coming = $("#p-find > div", fresh);
  if (found && coming && "full" in found.dataset) coming.replaceWith(found.cloneNode(true));
  children(box, fresh);
  lazy();
  seen();
}
function listen() {
  const way = sess()?.dataset.live;
  if (!way || stream || document.hidden) return;
  const to = new URL(way, location.href);
  to.searchParams.set("at", lastAt || sess().dataset.at);
  stream = new EventSource(to);
  const got = (event) => { if (event.lastEventId) lastAt = event.lastEventId; return JSON.parse(event.data); };
  stream.addEventListener("open", () => { $(".lost").hidden = true; sess().dataset.heard = ""; });
  stream.addEventListener("error", () => { $(".lost").hidden = false; if (stream?.readyState === EventSource.CLOSED) { hush(); setTimeout(listen, 3000); } });
  stream.addEventListener("turns", (event) => take(got(event)));
  stream.addEventListener("head", (event) => { const box = $("#standing"); const fresh = box.cloneNode(false); fresh.append(made(got(event).html)); children(box, fresh); });
  stream.addEventListener("gone", (event) => { say(got(event).why); hush(); });
}
function hush() { stream?.close(); stream = null; }
// Browsers limit connections per server, so hidden pages close theirs.
document.addEventListener("visibilitychange", () => { if (document.hidden) hush(); else listen(); });
on("follow", (button) => {
  following = !following;
  button.setAttribute("aria-pressed", String(following));
  if (!following) return;
  if ($(".turns > .fold:last-child")) { unfold($(".turns > .fold:last-child .foldrow")).then(end); return; }
  end();
});

// Parts that load after the page.
function lazy() {
  const box = $("#panel[data-src]");
  if (box) { const way = box.dataset.src; delete box.dataset.src; ask(way).then((html) => { box.replaceChildren(made(html)); lazy(); seen(); }).catch(() => say("Loading the panel failed")); }
  for (const slot of $$("[data-lazy]:not([data-full])")) {
    const look = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      look.disconnect();
      slot.dataset.full = "";
      ask(slot.dataset.src).then((html) => slot.replaceChildren(made(html))).catch(() => delete slot.dataset.full);
    });
    look.observe(slot);
  }
}
async function whole() {
  const way = sess()?.dataset.whole;
  if (!way) return false;
  try {
    const page = new DOMParser().parseFromString(await ask(way), "text/html");
    const fresh = $(".sess", page);
    const near = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
    document.adoptNode(fresh);
    sess().replaceWith(fresh);
    const foot = $(".foot > span", page);
    if (foot) $(".foot > span").replaceWith(document.adoptNode(foot));
    start(near || "ends" in fresh.dataset);
  } catch { $(".reading span").textContent = "Loading the session failed. Reload the page to retry."; }
  return true;
}
function start(toEnd) {
  watch();
  const marked = $(".turns mark");
  const target = location.hash && document.getElementById(location.hash.slice(1));
  const wanted = new URLSearchParams(location.search).get("turn");
  if (new URLSearchParams(location.search).get("find") && marked) marked.scrollIntoView({ block: "center" });
  else if (sess().dataset.goto) {
    const there = $(`[data-place="${CSS.escape(sess().dataset.goto)}"]`) ?? document.getElementById(sess().dataset.goto);
    const turn = there?.closest(".turn");
    if (turn) { jump(turn); if (there !== turn) { stand(there); there.scrollIntoView({ block: "center" }); } }
  } else if (target) { if (target.matches(".turn")) jump(target); else target.scrollIntoView(); }
  else if (wanted && document.getElementById(`t${wanted}`)) jump(document.getElementById(`t${wanted}`));
  else if (toEnd && turns().length) jump(turns().at(-1));
  seen();
  lazy();
  listen();
}
if (sess()) { if (sess().dataset.whole) { if ("ends" in sess().dataset) turns().at(-1)?.scrollIntoView(); whole(); } else start("ends" in sess().dataset); }
