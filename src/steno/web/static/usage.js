// Keys for charts and lists: earlier and later, and opening the bar or row that is here.
import { keyed } from "./keys.js";
import { here } from "./steno.js";

const go = (rel) => { const link = document.querySelector(`a[rel="${rel}"]`); if (link) location.assign(link.href); };
keyed("[", () => go("prev"));
keyed("]", () => go("next"));

// What a bar or row opens to is behind its figure; a link of a drawing cannot be clicked by script.
keyed("o", () => {
  const stop = here();
  const link = stop?.querySelector("a.total[href], a[href]");
  if (link) location.assign(link.getAttribute("href"));
});
