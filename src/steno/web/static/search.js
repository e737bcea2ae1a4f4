// Words are looked for while they are typed, and the address follows.
const box = document.querySelector(".find input");
const hits = document.getElementById("hits");
let asked = new AbortController();
let waiting = 0;

async function look() {
  const words = box.value.trim();
  const address = new URL(location.href);
  address.pathname = "/search";
  for (const name of ["q", "from", "part"]) address.searchParams.delete(name);
  if (words) address.searchParams.set("q", words);
  asked.abort();
  asked = new AbortController();
  const part = new URL(address);
  part.searchParams.set("part", "hits");
  try {
    const answer = await fetch(part, { signal: asked.signal });
    if (!answer.ok) return;
    hits.innerHTML = await answer.text();
    history.replaceState(null, "", address);
    document.title = `${words || "Search"} · steno`;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

box?.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(look, 120); });
