// Short words on what was done, with a way back where there is one. They go by themselves after 8 s, unless somebody
// points at them or has the focus there. What is said of the same kind takes the place of what was.
import { el, foreign } from "./dom.js";

const life = 8000; // BOARD 5: time for Undo

let box = null;

export function toast(words, undo = null, kind = "") {
  box ??= document.querySelector("as-toast");
  const note = el("p", { class: "toast", "data-kind": kind || null }, foreign(words), undo ? el("button", { type: "button", on: { click: () => { undo.act(); end(); } } }, undo.label) : "");
  const end = () => note.remove();
  const wait = () => setTimeout(() => (note.matches(":hover, :focus-within") ? wait() : end()), life);
  if (kind) for (const old of box.querySelectorAll(`[data-kind="${kind}"]`)) old.remove();
  box.append(note);
  while (box.children.length > 3) box.firstElementChild.remove();
  wait();
}

class Toast extends HTMLElement {
  connectedCallback() {
    this.setAttribute("role", "status");
  }
}
customElements.define("as-toast", Toast);
