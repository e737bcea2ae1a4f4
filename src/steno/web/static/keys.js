// Actions and keyboard shortcuts. Shortcuts are disabled in text fields.
const actions = new Map();
const keys = new Map();
let first = "";

export const on = (name, action) => actions.set(name, action);
on.run = (name, ...given) => actions.get(name)?.(...given);

// `key` may be a sequence of two keys: "g s". `what` is the name of an action or a function.
export const keyed = (key, what) => keys.set(key, typeof what === "string" ? () => on.run(what) : what);

export const typing = (target) => target instanceof HTMLElement
  && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
  const both = first ? `${first} ${event.key}` : event.key;
  first = "";
  const run = keys.get(both) ?? keys.get(event.key);
  if (run) { event.preventDefault(); run(event); return; }
  if ([...keys.keys()].some((each) => each.startsWith(`${event.key} `))) {
    first = event.key;
    setTimeout(() => { first = ""; }, 1200);
  }
});
