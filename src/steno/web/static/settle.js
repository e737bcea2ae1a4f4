// Merges new HTML into the page: equal elements keep their focus, and opened elements stay open.
function same(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName
    && (one.dataset?.place ?? "") === (other.dataset?.place ?? "") && (one.id ?? "") === (other.id ?? "");
}
export function settle(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== fresh.data) old.data = fresh.data; return; }
  if (old.isEqualNode(fresh)) return;
  for (const { name, value } of fresh.attributes ?? []) if (name !== "open" && name !== "class" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (fresh.className !== undefined && typeof fresh.className === "string") {
    const marks = ["is-here", "is-at", "is-marked"].filter((mark) => old.classList.contains(mark));
    if (old.className !== fresh.className) { old.className = fresh.className; old.classList.add(...marks); }
  }
  // Opened elements keep their content.
  const keep = old.matches?.("details[data-full] > .in") && !fresh.parentElement?.hasAttribute("data-full");
  if (!keep) children(old, fresh);
}
export function children(old, fresh) {
  let place = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    let match = place;
    while (match && !same(match, next)) match = match.nextSibling;
    if (!match) { old.insertBefore(next, place); continue; }
    while (place !== match) { const gone = place; place = place.nextSibling; gone.remove(); }
    place = match.nextSibling;
    settle(match, next);
  }
  while (place) { const gone = place; place = place.nextSibling; gone.remove(); }
}
