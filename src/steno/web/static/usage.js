// Keyboard shortcuts of charts and lists.
import { keyed } from "./keys.js";
import { here } from "./steno.js";

const go = (rel) => { const link = document.querySelector(`a[rel="${rel}"]`); if (link) location.assign(link.href); };
keyed("[", () => go("prev"));
keyed("]", () => go("next"));

// Open the link of the selected bar or row. Links in SVG have no click method.
keyed("o", () => {
  const stop = here();
  const link = stop?.querySelector("a.total[href], a[href]");
  if (link) location.assign(link.getAttribute("href"));
});
