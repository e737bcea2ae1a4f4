// Updates the page while a check is running.
import { keyed } from "./keys.js";
import { copy, here, stand, stops } from "./steno.js";

const SOON = 700;
let waiting = 0;

async function again() {
  const address = new URL(location.href);
  address.searchParams.set("part", "body");
  address.hash = "";
  let answer;
  try { answer = await fetch(address); } catch { lost(); return; }
  if (!answer.ok) { lost(); return; }
  const made = document.createElement("template");
  made.innerHTML = await answer.text();
  const fresh = made.content.getElementById("health");
  const old = document.getElementById("health");
  if (!fresh || !old) return;
  const place = stops().indexOf(here());
  const inside = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (place >= 0 && inside) stand(stops()[place]);
  tell(Number(fresh.dataset.trouble));
  watch();
}

// Update the number of problems in the navigation bar.
function tell(number) {
  const link = [...document.querySelectorAll(".nav a")].at(-1);
  const shown = link?.querySelector("[data-trouble]");
  if (!number) { shown?.remove(); return; }
  if (shown) { shown.firstChild.textContent = String(number); return; }
  const made = document.createElement("span");
  made.className = "n warn";
  made.dataset.trouble = "";
  made.append(String(number));
  link?.append(made);
}

function lost() {
  if (document.querySelector("[data-lost]")) return;
  const note = document.createElement("div");
  note.className = "note warn gap-s";
  note.dataset.lost = "";
  note.textContent = "Connection lost; the page may be out of date.";
  document.getElementById("health")?.prepend(note);
}

function watch() {
  clearTimeout(waiting);
  if (document.getElementById("health")?.dataset.busy) waiting = setTimeout(again, SOON);
}
watch();

keyed("y", () => {
  const command = here()?.querySelector(".cmdline span");
  if (command) copy(command.textContent);
});
