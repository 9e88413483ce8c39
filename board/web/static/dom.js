// Building and changing elements. Text enters as text only; there is no way here to give markup.

// What turns the letters around it (bidi embeddings, overrides and isolates), and control characters but tab and line ends.
const turning = /[\u202A-\u202E\u2066-\u2069\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/g;

// plain is text as it may be drawn: whatever reads from the right by its own letters still does, but nothing is made to.
// Every text and every attribute that is read goes through here.
export const plain = (value) => String(value ?? "").replace(turning, "");
const read = new Set(["title", "aria-label", "placeholder", "label", "alt"]);
const kid = (k) => (typeof k === "string" ? plain(k) : k);

// el makes an element. Props: class, on (listeners by event), anything else an attribute (true: empty, false: absent).
export function el(tag, props = {}, ...kids) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    } else {
      attr(node, name, value);
    }
  }
  node.append(...kids.filter((k) => k !== null && k !== undefined && k !== "").map(kid));
  return node;
}

export function svg(tag, props = {}, ...kids) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) attr(node, name, value);
  node.append(...kids.map(kid));
  return node;
}

// attr sets, changes or removes an attribute, touching the document only when something differs.
export function attr(node, name, value) {
  if (value === false || value === null || value === undefined) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else {
    const text = value === true ? "" : read.has(name) ? plain(value) : String(value);
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}

export function text(node, value) {
  const s = plain(value);
  if (node.textContent !== s) node.textContent = s;
}

// foreign is text that somebody else wrote: isolated, so that its direction changes nothing around it.
export function foreign(value, props = {}) {
  const node = el("bdi", props);
  node.textContent = plain(value);
  return node;
}

// keyed makes the children of parent follow items: one element a key, kept while its key stays. When hold is true no
// element changes its place; new ones go to the end.
export function keyed(parent, items, key, make, update, hold = false) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  const wanted = [];
  for (const item of items) {
    const k = String(key(item));
    let node = old.get(k);
    if (node) old.delete(k);
    else {
      node = make(item);
      node.dataset.key = k;
    }
    update(node, item);
    wanted.push(node);
  }
  for (const gone of old.values()) gone.remove();
  if (hold) {
    for (const node of wanted) if (node.parentNode !== parent) parent.append(node);
    return;
  }
  let at = parent.firstElementChild;
  for (const node of wanted) {
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
}

// steady keeps the order of keys that somebody is looking at: while hold is true new ones go to the end.
export function steady(before, items, hold) {
  if (!hold || !before) return items;
  const now = new Map(items.map((x) => [x.key, x]));
  const kept = [];
  for (const x of before) {
    const y = now.get(x.key);
    if (y) kept.push(y);
    now.delete(x.key);
  }
  return kept.concat([...now.values()]);
}

// busy says whether somebody points at or works in a region: then its rows keep their places.
export function busy(region) {
  return region.matches(":hover") || (region.contains(document.activeElement) && document.activeElement !== region);
}
