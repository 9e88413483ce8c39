// Dragging a row of the state document by its handle, with mouse, pen or finger. Esc lets it go where it was.
import { attr, el } from "./dom.js";
import { t } from "./strings.js";

const edge = 48; // px from an end of the view where it scrolls along

export function grip(agenda, node) {
  const handle = el("span", { class: "grip", title: t("drag_hint"), "aria-hidden": "true", on: { pointerdown: (e) => begin(e, handle, agenda, node()) } }, "⠿");
  return handle;
}

function begin(e, handle, agenda, row) {
  if (e.button || agenda.isOff || agenda.dragging || row.entry.fixed) return;
  e.preventDefault();
  const list = row.parentNode;
  const view = agenda.parentElement;
  let before;
  const mark = (y) => {
    const others = [...list.children].filter((r) => r !== row);
    const under = others.find((r) => { const b = r.getBoundingClientRect(); return y < b.top + b.height / 2; });
    before = under ? under.entry.key : agenda.shown[row.entry.tab][list.children.length]?.key ?? "";
    for (const r of list.children) attr(r, "data-drop", r === under ? "before" : !under && r === others.at(-1) ? "after" : null);
  };
  const moved = (ev) => {
    if (ev.pointerId !== e.pointerId) return;
    const box = view.getBoundingClientRect();
    if (ev.clientY < box.top + edge) view.scrollTop -= 12;
    else if (ev.clientY > box.bottom - edge) view.scrollTop += 12;
    mark(ev.clientY);
  };
  const end = (drop) => {
    removeEventListener("pointermove", moved);
    removeEventListener("pointerup", dropped);
    removeEventListener("pointercancel", left);
    removeEventListener("keydown", escaped, true);
    for (const r of list.children) attr(r, "data-drop", null);
    attr(row, "data-drags", null);
    agenda.dragging = false;
    if (drop && before !== undefined) agenda.move(row.entry.tab, row.entry.key, before);
  };
  const dropped = (ev) => { if (ev.pointerId === e.pointerId) end(true); };
  const left = (ev) => { if (ev.pointerId === e.pointerId) end(false); };
  const escaped = (ev) => { if (ev.key === "Escape") { ev.stopPropagation(); end(false); } };
  agenda.dragging = true;
  attr(row, "data-drags", true);
  try { handle.setPointerCapture(e.pointerId); } catch { /* a pointer that is gone already ends the drag by its own event */ }
  addEventListener("pointermove", moved); // of the window: the row may be gone before the pointer lets it go
  addEventListener("pointerup", dropped);
  addEventListener("pointercancel", left);
  addEventListener("keydown", escaped, true);
}
