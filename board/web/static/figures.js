// What each node of the inside measured of itself in the last hour, below the mesh. Who does not answer is shown as it was
// known, with the time.
import { attr, el, foreign, keyed, text } from "./dom.js";
import { timeNode } from "./words.js";
import { ask, Refused } from "./feed.js";
import { showWhy, whyNot } from "./refusals.js";
import { covered, healthCharts } from "./spark.js";
import { t } from "./strings.js";

const every = 20e3; // ms between questions while somebody looks
const opened = 4; // so many nodes are shown with their charts at once

export class Figures extends HTMLElement {
  connectedCallback() {
    this.at = 0;
    this.list = el("div");
    this.said = el("p", { class: "quiet" }, t("asking"));
    this.append(el("h3", {}, t("health")), this.said, this.list);
  }

  async draw(now) {
    if (this.asks || now - this.at < every) return;
    this.at = now;
    this.asks = true;
    try {
      const { nodes } = await ask("figures");
      this.said.hidden = true;
      keyed(this.list, nodes, (n) => n.peer, () => this.row(nodes.length <= opened), (row, n) => this.fill(row, n, now));
    } catch (err) { // what was known stays
      showWhy(this.said, whyNot(err, "past_refused", t("past_failed")));
      this.said.hidden = !(err instanceof Refused) && this.list.childElementCount > 0; // the banner says that the node is silent
    } finally {
      this.asks = false;
    }
  }

  row(open) {
    const row = el("details", { class: "figures", open, on: { toggle: () => this.charts(row) } }, el("summary", {}, foreign("", { class: "name" }), " ", el("span", { class: "state" }), " ", el("span", { class: "quiet" })), el("div", {}));
    return row;
  }

  fill(row, n, now) {
    row.figures = n;
    const [name, state, span] = row.firstElementChild.children;
    text(name, n.name || n.peer.slice(-6));
    attr(state, "data-tone", n.ok ? null : "wait");
    if (n.ok) text(state, n.self ? t("this_node") : "");
    else if (n.at) state.replaceChildren(t("not_answering_since"), " ", timeNode(n.at, now));
    else text(state, t("not_answering"));
    text(span, n.samples?.length > 1 ? covered(n) : "");
    this.charts(row);
  }

  charts(row) {
    const n = row.figures;
    if (!row.open || !n) return;
    const key = n.at + "/" + n.samples.length;
    const body = row.lastElementChild;
    if (body.dataset.of === key) return;
    body.dataset.of = key;
    body.replaceChildren(n.samples.length > 1 ? healthCharts(n) : el("p", { class: "quiet" }, t("no_history")));
  }
}
customElements.define("as-figures", Figures);
