// What agents hold for themselves alone: holder, scope, and how long the lease still runs, below the mesh.
import { el, foreign, keyed, text } from "./dom.js";
import { age, count, timeNode } from "./words.js";
import { ask } from "./feed.js";
import { go } from "./route.js";
import { t } from "./strings.js";

const every = 4000; // ms between questions while somebody looks

export class Claims extends HTMLElement {
  connectedCallback() {
    this.at = 0;
    this.claims = [];
    this.count = el("span", { class: "count" });
    this.none = el("p", { class: "quiet" }, t("no_claims"));
    this.body = el("tbody");
    this.table = el("div", { class: "table", hidden: true }, el("table", {}, el("thead", {}, el("tr", {}, ...["f_scopes", "f_holder", "f_why", "f_since", "f_left"].map((k) => el("th", { scope: "col" }, t(k))))), this.body));
    this.append(el("h3", {}, t("claims"), " ", this.count), this.none, this.table);
  }

  async draw(now) {
    if (now - this.at < every) return;
    this.at = now;
    try {
      this.claims = (await ask("claims")).claims ?? [];
    } catch {
      return; // what was known stays; the banner says that the node is silent
    }
    text(this.count, this.claims.length ? count(this.claims.length) : "");
    this.none.hidden = this.claims.length > 0;
    this.table.hidden = this.claims.length === 0;
    keyed(this.body, this.claims, (c) => c.id, () => this.row(), (row, c) => this.fill(row, c, now));
  }

  row() {
    const holder = el("button", { type: "button", class: "link-button", on: { click: () => go("a", holder.dataset.agent, holder) } }, foreign(""));
    holder.dataset.row = "";
    return el("tr", {}, el("th", { scope: "row" }, foreign("")), el("td", {}, holder), el("td", {}, foreign("")), el("td"), el("td"));
  }

  fill(row, c, now) {
    const [scopes, holder, why, since, left] = row.children;
    text(scopes.firstElementChild, c.scopes.join(", "));
    holder.firstElementChild.dataset.agent = c.agent;
    text(holder.firstElementChild.firstElementChild, c.agent + (c.nodeName ? " · " + c.nodeName : ""));
    text(why.firstElementChild, c.why || "–");
    since.replaceChildren(timeNode(c.since, now));
    text(left, c.left ? age(c.left) : c.here ? "–" : t("left_unknown", { node: c.nodeName || "–" }));
  }
}
customElements.define("as-claims", Claims);
