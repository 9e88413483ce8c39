// Single keys. They are dead in fields and while composing; on layouts without Latin letters the key's place counts.
const regions = ["work", "messages", "agents", "foot"];

const letter = (e) => (/^[\x20-\x7e]$/.test(e.key) ? e.key : e.code.startsWith("Key") ? e.code.slice(3).toLowerCase() : e.key);
const visible = (node) => node.getClientRects().length > 0;

function step(by) {
  const region = document.activeElement?.closest("main > *") ?? document.querySelector("#work");
  const rows = [...region.querySelectorAll("[data-row]")].filter(visible);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest("[data-row]"));
  const next = at < 0 ? rows[by > 0 ? 0 : rows.length - 1] : rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function nextRegion(back) {
  const shown = regions.map((id) => document.getElementById(id)).filter(visible);
  const at = shown.findIndex((r) => r.contains(document.activeElement));
  shown[(at + (back ? -1 : 1) + shown.length) % shown.length]?.focus();
}

export function listen(act) {
  document.addEventListener("keydown", (e) => {
    if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey) return;
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
    if (e.target.closest("input, textarea, select, [contenteditable]")) return;
    if (e.key === "Enter" && e.target.matches("li[data-row]")) {
      e.target.querySelector("button")?.click();
      return;
    }
    const key = letter(e);
    const names = { "?": "keys", d: "delegate", p: "prompt", a: "agents", s: "messages", y: "copy", x: "cancel" };
    if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    else if (Object.hasOwn(names, key)) act(names[key]);
    else return;
    e.preventDefault();
  });
}
