// Single keys. They are dead in fields and while composing, and can be switched off; on layouts without Latin letters the
// key's place counts.
import { kept } from "./kept.js";

const regions = ["top", "agents", "needs", "work", "view", "messages", "details", "foot"];

const letter = (e) => (/^[\x21-\x7e]$/.test(e.key) ? e.key : e.code.startsWith("Key") ? (e.shiftKey ? e.code.slice(3) : e.code.slice(3).toLowerCase()) : e.key);
const visible = (node) => node.getClientRects().length > 0;

// names of acts by key; board.js does them.
const single = {
  "?": "keys", "/": "search", d: "delegate", c: "prompt", r: "reply", w: "why", y: "copy", x: "cancel", a: "agents", s: "messages",
  n: "next", t: "time", L: "live", ".": "actions", "[": "earlier", "]": "later",
};
const second = { b: "board", a: "agenda", m: "mesh", s: "settings" };

function step(by) {
  const region = document.activeElement?.closest("main section, main aside, main > *") ?? document.getElementById("work");
  const stream = /** @type {any} */ (region.querySelector("as-stream"));
  if (stream) return stream.step(by);
  const rows = /** @type {HTMLElement[]} */ ([...region.querySelectorAll("[data-row]")]).filter(visible);
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement.closest("[data-row]"));
  const next = at < 0 ? rows[by > 0 ? 0 : rows.length - 1] : rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

function nextRegion(back) {
  const shown = regions.map((id) => document.getElementById(id)).filter((r) => r && visible(r));
  const at = shown.findIndex((r) => r.contains(document.activeElement));
  const to = at < 0 && back ? shown.length - 1 : (at + (back ? -1 : 1) + shown.length) % shown.length;
  const region = shown[to];
  /** @type {HTMLElement} */ (region?.id === "top" ? region.querySelector("button:not([hidden])") : region)?.focus();
}

export function listen(act) {
  let waits = 0; // until when g waits for its second key
  document.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && (e.key.toLowerCase() === "k" || e.code === "KeyK")) {
      e.preventDefault();
      act("palette");
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    if (e.key === "F6") {
      e.preventDefault();
      nextRegion(e.shiftKey);
      return;
    }
    if (e.key === "Escape") {
      act("close");
      return;
    }
    const target = /** @type {HTMLElement} */ (e.target);
    if (target.closest("input:not([type=range]), textarea, select, [contenteditable]")) return;
    if (e.key === "Enter" && target.matches("li[data-row]")) {
      e.preventDefault();
      target.click();
      return;
    }
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (target.closest("[data-row]") && step(e.key === "ArrowDown" ? 1 : -1)) e.preventDefault();
      return;
    }
    const card = target.closest(".card");
    if (card && /^[1-9]$/.test(e.key)) {
      /** @type {HTMLElement} */ (card.querySelector(`[data-pick="${e.key}"]`))?.click();
      e.preventDefault();
      return;
    }
    if (kept("keys") === "off") return;
    const key = letter(e);
    if (waits > e.timeStamp) {
      waits = 0;
      if (Object.hasOwn(second, key)) {
        e.preventDefault();
        act(second[key]);
        return;
      }
    }
    if (key === "g") waits = e.timeStamp + 1500;
    else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    else if (Object.hasOwn(single, key)) act(single[key]);
    else return;
    e.preventDefault();
  });
}
