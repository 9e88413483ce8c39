// The address of what is shown: reload, Back and a pasted link restore it. Nobody else reads or writes the address.

const names = ["q", "agent", "role", "intent", "thread", "task", "room"];
const views = { "/agenda": "agenda", "/mesh": "mesh", "/settings": "settings" };

let from = null; // the row that opened the details: focus returns to it

// where reads the address: the view, the details over it, what Messages selects and since when, and the past moment that the
// board is shown at.
export function where() {
  const path = location.pathname;
  const [, kind, id] = path.match(/^\/([tman])\/([^/]+)$/) ?? [];
  const params = new URLSearchParams(location.search);
  const filter = {};
  for (const name of names) if (params.get(name)) filter[name] = params.get(name);
  const view = views[path] ?? (kind ? history.state?.view ?? "board" : "board");
  const at = view === "board" ? Math.trunc(Number(params.get("at"))) || 0 : 0; // agenda, mesh and settings have no past
  return { view, kind, id: kind ? decode(id) : "", filter, since: Number(params.get("since")) || 0, at };
}

function decode(id) {
  try { return decodeURIComponent(id); } catch { return id; }
}

function move(path, search, state) {
  history.pushState(state, "", path + search);
  dispatchEvent(new CustomEvent("route"));
}

const searchOf = (filter, since, at) => {
  const params = new URLSearchParams(filter);
  if (since) params.set("since", String(since));
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

// show changes the view. Out of the past the board alone can be shown.
export function show(view) {
  if (view !== "board" && where().at) dispatchEvent(new CustomEvent("act", { detail: "refuse" }));
  else move(view === "board" ? "/" : "/" + view, location.search, null);
}

// travel shows the board at a past moment; 0: as it is. small changes of the moment are no step that Back would undo.
export function travel(at, small = false) {
  const { filter, since } = where();
  const path = location.pathname + searchOf(filter, since, at);
  if (small) history.replaceState(history.state, "", path);
  else history.pushState(history.state, "", path);
  dispatchEvent(new CustomEvent("route"));
}

// select changes what Messages shows; a value of "" takes a part away.
export function select(changes, since = 0) {
  const filter = { ...where().filter };
  for (const [name, value] of Object.entries(changes)) {
    if (value) filter[name] = value;
    else delete filter[name];
  }
  move(location.pathname, searchOf(filter, since, where().at), history.state);
}

export const clear = () => move(location.pathname, searchOf({}, 0, where().at), history.state);

export function begin(changed) {
  addEventListener("route", changed);
  addEventListener("popstate", changed);
}
