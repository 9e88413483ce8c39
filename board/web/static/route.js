// The address of what is shown: reload, Back and a pasted link restore it. Nobody else reads or writes the address.

const names = ["q", "agent", "role", "intent", "thread", "task", "room"];
const views = { "/mesh": "mesh", "/settings": "settings" };

let from = null; // the row that opened the details: focus returns to it

// where reads the address: the view, the details over it, what Messages selects, and the moment it starts at.
export function where() {
  const path = location.pathname;
  const [, kind, id] = path.match(/^\/([tman])\/([^/]+)$/) ?? [];
  const params = new URLSearchParams(location.search);
  const filter = {};
  for (const name of names) if (params.get(name)) filter[name] = params.get(name);
  const at = Number(params.get("at")) || 0;
  return { view: views[path] ?? (kind ? history.state?.view ?? "board" : "board"), kind, id: kind ? decode(id) : "", filter, at };
}

function decode(id) {
  try { return decodeURIComponent(id); } catch { return id; }
}

function move(path, search, state) {
  history.pushState(state, "", path + search);
  dispatchEvent(new CustomEvent("route"));
}

const searchOf = (filter, at) => {
  const params = new URLSearchParams(filter);
  if (at) params.set("at", String(at));
  const text = params.toString();
  return text ? "?" + text : "";
};

// go shows the details of kind (t, m, a, n) and id over the present view.
export function go(kind, id, row = null) {
  from = row ?? document.activeElement;
  move("/" + kind + "/" + encodeURIComponent(id), location.search, { view: where().view });
}

// leave closes the details, and says from which row they were opened.
export function leave() {
  const { view } = where();
  move(view === "board" ? "/" : "/" + view, location.search, null);
  const row = from;
  from = null;
  return row;
}

// show changes the view.
export const show = (view) => move(view === "board" ? "/" : "/" + view, location.search, null);

// select changes what Messages shows; a value of "" takes a part away.
export function select(changes, at = 0) {
  const filter = { ...where().filter };
  for (const [name, value] of Object.entries(changes)) {
    if (value) filter[name] = value;
    else delete filter[name];
  }
  move(location.pathname, searchOf(filter, at), history.state);
}

export const clear = () => move(location.pathname, "", history.state);

export function begin(changed) {
  addEventListener("route", changed);
  addEventListener("popstate", changed);
}
