// A QR code in a layer of its own, dark on light in every scheme, as cameras want it. What it says stands in no address and
// no storage, and goes with the layer.
import { el, svg } from "./dom.js";
import { t } from "./strings.js";

const quiet = 4; // squares of margin

class QR extends HTMLElement {
  // show draws the rows of squares, with the words that say what they are.
  show(rows, words) {
    const size = rows.length + 2 * quiet;
    const dark = rows.flatMap((row, y) => [...row.matchAll(/1+/g)].map((run) => `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`)).join("");
    const dialog = /** @type {HTMLDialogElement} */ (el("dialog", { class: "qr", "aria-labelledby": "qr-title", on: { close: () => dialog.remove() } },
      el("h2", { id: "qr-title" }, t("qr")), el("p", { class: "quiet" }, words),
      svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": t("qr"), "shape-rendering": "crispEdges" }, svg("rect", { width: size, height: size, class: "light" }), svg("path", { d: dark, class: "dark" })),
      el("button", { type: "button", on: { click: () => dialog.close() } }, t("qr_close"))));
    this.replaceChildren(dialog);
    dialog.showModal();
  }
}
customElements.define("as-qr", QR);
