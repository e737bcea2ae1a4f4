// The list goes on by itself, and follows what is written meanwhile.
import { keyed } from "./keys.js";

const list = document.getElementById("list");

async function more(link) {
  link.removeAttribute("data-more");
  const address = new URL(link.href);
  address.searchParams.set("part", "rows");
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (!answer.ok) { link.setAttribute("data-more", ""); return; }
  const made = document.createElement("div");
  made.innerHTML = await answer.text();
  join(made);
  link.parentElement.replaceWith(...made.childNodes);
  watch();
}

// A day that began on the page before goes on under its own heading.
function join(made) {
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
watch();

keyed("f", () => {
  const fold = document.querySelector("details.facets");
  if (!fold) return;
  fold.open = true;
  fold.querySelector("a")?.focus();
});
