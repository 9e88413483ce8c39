// Glyphs and ticks: the marks that repeat. A glyph never stands without its word.
import { attr, el, svg } from "./dom.js";
import { t } from "./strings.js";

const ring = (extra = {}) => svg("circle", { cx: 6, cy: 6, r: 4.25, fill: "none", stroke: "currentColor", "stroke-width": 1.5, ...extra });
const line = (d) => svg("path", { d, fill: "none", stroke: "currentColor", "stroke-width": 1.75, "stroke-linecap": "round", "stroke-linejoin": "round" });
const solid = (d) => svg("path", { d, fill: "currentColor" });

// kind → [colour, shapes]
const shapes = {
  working: ["run", () => [svg("circle", { cx: 6, cy: 6, r: 5, fill: "currentColor" })]],
  idle: ["text3", () => [ring()]],
  "pull-only": ["text3", () => [ring(), line("M6 4.2v3.6")]],
  "needs-human": ["wait", () => [solid("M6 .6 11.4 6 6 11.4 .6 6z")]],
  deaf: ["bad", () => [ring(), line("M2 10 10 2")]],
  away: ["text3", () => [line("M2 6h8")]],
  unknown: ["text3", () => [ring({ "stroke-dasharray": "1.2 2.1" })]],
  queued: ["text3", () => [line("M2 3h8M2 6h8M2 9h8")]],
  paused: ["wait", () => [solid("M2 2h8v8H2z")]],
  risk: ["bad", () => [solid("M4 .8h4L11.2 4v4L8 11.2H4L.8 8V4z")]],
  held: ["run", () => [solid("M2.5 2h2.5v8H2.5zM7 2h2.5v8H7z")]],
  done: ["ok", () => [line("M1.8 6.4 4.7 9.2 10.2 2.9")]],
  failed: ["bad", () => [line("M2.4 2.4l7.2 7.2M9.6 2.4 2.4 9.6")]],
};

export const taskGlyph = {
  queued: "queued", delivered: "queued", running: "working", done: "done", blocked: "needs-human",
  failed: "failed", interrupted: "failed", refused: "failed", cancelled: "away",
};

class Glyph extends HTMLElement {
  static observedAttributes = ["kind"];
  attributeChangedCallback() {
    const [colour, make] = shapes[this.getAttribute("kind")] ?? shapes.unknown;
    attr(this, "data-colour", colour);
    attr(this, "aria-hidden", "true");
    this.replaceChildren(svg("svg", { viewBox: "0 0 12 12", width: 12, height: 12 }, ...make()));
  }
}
customElements.define("as-glyph", Glyph);

export const glyph = (kind) => el("as-glyph", { kind });

const order = ["logged", "replicated", "persisted", "processed"];

// laterTiers are those that a message may yet come to, of those that it has not: what is for nobody comes into no inbox, and what
// was refused by whom it was for goes no further. In a room others may have it yet.
export function laterTiers(e, tiers) {
  const reached = new Set(tiers.map((x) => x.tier));
  const over = !e.to && !e.room && !e.rcpt?.length ? ["persisted", "processed"] : reached.has("refused") && !e.room && !reached.has("processed") ? order : [];
  return order.filter((tier) => !reached.has(tier) && !over.includes(tier));
}

class Ticks extends HTMLElement {
  // past: then that others have it is on no record here.
  show(e, tiers, alone, past = 0) {
    const reached = new Set(tiers.map((x) => x.tier));
    const refused = reached.has("refused");
    const later = laterTiers(e, tiers);
    if (this.children.length === 0) {
      attr(this, "role", "img");
      this.append(...order.map(() => el("i")));
    }
    const said = order.map((tier, i) => {
      const hollow = tier === "replicated" && (alone || past) && later.includes(tier);
      attr(this.children[i], "class", reached.has(tier) ? "on" : hollow ? "hollow" : later.includes(tier) ? "off" : "never");
      if (reached.has(tier)) return t("tier_" + tier);
      return hollow ? t(past ? "tick_unrecorded" : "tick_alone") : later.includes(tier) ? t("tick_wait", { tier: t("tier_" + tier) }) : "";
    });
    attr(this, "data-all", reached.has("processed") || !later.length && !refused ? "ok" : refused ? "bad" : null);
    const label = said.concat(refused ? t("tier_refused") : "").filter(Boolean).join(", ");
    attr(this, "title", label);
    attr(this, "aria-label", label);
  }
}
customElements.define("as-ticks", Ticks);
