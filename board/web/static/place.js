// Where somebody was on the board when its page went: what they read, how far each region was scrolled, what had the focus. A
// reload, or a page that comes back with its node, puts them there again.
const name = "aster.place";
const regions = ["agents", "middle", "view"];
const looks = 10; // pages of older messages that are asked for until what was read is there

// leavePlace keeps the place when the page goes.
export function leavePlace(stream) {
  addEventListener("pagehide", () => {
    const active = document.activeElement;
    const row = /** @type {HTMLElement} */ (active?.closest("[data-key]"));
    const place = {
      href: location.pathname + location.search,
      tops: Object.fromEntries(regions.map((id) => [id, document.getElementById(id).scrollTop])),
      read: stream.vlist.atEnd ? null : stream.place(),
      focus: active?.id ? { id: active.id } : row ? { key: row.dataset.key, region: row.closest("section, aside")?.id } : null,
    };
    try { sessionStorage.setItem(name, JSON.stringify(place)); } catch { /* then the page begins at its newest */ }
  });
}

function left() {
  try {
    const place = JSON.parse(sessionStorage.getItem(name));
    sessionStorage.removeItem(name);
    return place?.href === location.pathname + location.search ? place : null;
  } catch {
    return null;
  }
}

// takePlace goes there once the rows are drawn, unless somebody has gone elsewhere by then.
export async function takePlace(stream) {
  const place = left();
  if (!place) return;
  for (const id of regions) document.getElementById(id).scrollTop = place.tops?.[id] ?? 0;
  if (place.read) {
    for (let i = 0; i < 300 && stream.window.state === "asking"; i++) await new Promise(requestAnimationFrame);
    for (let i = 0; i < looks && stream.window.before && stream.window.items[0]?.pos > place.read.pos; i++) await stream.window.older();
    stream.put(place.read);
  }
  if (!place.focus || document.activeElement !== document.body) return;
  const region = document.getElementById(place.focus.region ?? "");
  const focus = place.focus.id ? document.getElementById(place.focus.id) : region?.querySelector(`[data-key="${CSS.escape(place.focus.key)}"]`);
  /** @type {HTMLElement} */ (focus)?.focus({ preventScroll: true });
}
