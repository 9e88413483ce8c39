// Needs you: what waits for a person. Clocks first; at most five cards, the rest as rows; what is for others folds.
import { attr, el, foreign, keyed, text } from "./dom.js";
import { age, count, duration } from "./words.js";
import { cardNode, drawCard } from "./ask.js";
import { glyph } from "./marks.js";
import { go, show } from "./route.js";
import { t } from "./strings.js";

const cards = 5; // BOARD 5
const soon = 2 * 60e3; // a clock under this always gets a card
const toldFor = 5000; // how long a card says by whom it was answered

const frameHeight = 88; // px of what stands round the cards
const heightOf = (a) => 76 + (a.text.length > 90 ? 20 : 0) + (a.options?.length ? 36 : 0) + (a.options?.some((o) => o.detail) ? 18 : 0); // px, about

const rank = { approval: 1, blocked: 2, choice: 3, question: 3, review: 3, decision: 4, person: 5, key: 6 };

// mine says whether an ask is for this board's person.
export function mine(ask, store, now) {
  const self = store.status?.peer;
  return ask.owner === self || Boolean(ask.alsoAt && now >= ask.alsoAt && store.status?.main?.peer === self);
}

// allAsks are the node's, and agents here that say they need a person but asked nothing that can be answered on a board.
export function allAsks(store) {
  const asks = store.asks.slice();
  const asking = new Set(asks.filter((a) => a.kind !== "decision").map((a) => a.asker));
  for (const a of store.agents) {
    if (a.state !== "needs-human" || asking.has(a.id)) continue;
    asks.push({ id: "a:" + a.id, kind: "person", text: a.doing || "", at: a.since || 0, asker: a.id, node: a.home, nodeName: a.node, owner: a.home, ownerName: a.node });
  }
  return asks;
}

// waitingFor counts what waits for this person.
export const waitingFor = (store, now) => allAsks(store).filter((a) => !store.setAside.has(a.id) && mine(a, store, now)).length;

export function order(a, b) {
  const clock = (x) => (x.until && x.kind !== "key" ? x.until : Infinity);
  return clock(a) - clock(b) || rank[a.kind] - rank[b.kind] || a.at - b.at || (a.id < b.id ? -1 : 1);
}

class Needs extends HTMLElement {
  connectedCallback() {
    this.title_ = el("h2", { id: "needs-title" }, t("needs_you"));
    this.total = el("span", { class: "count" });
    this.none = el("p", { class: "quiet calm" }, t("needs_nothing"));
    this.cards = el("div", { class: "cards" });
    this.rows = el("div", { class: "rows" });
    this.more = el("button", { type: "button", class: "fold", hidden: true, "aria-expanded": "false", on: { click: () => this.toggle("more") } });
    this.others = el("button", { type: "button", class: "fold", hidden: true, "aria-expanded": "false", on: { click: () => this.toggle("others") } });
    this.otherRows = el("div", { class: "rows" });
    this.aside = el("button", { type: "button", class: "fold", hidden: true, on: { click: () => { this.store.setAside.clear(); this.store.keepAside(); this.redraw(); } } });
    this.append(el("div", { class: "head" }, this.title_, this.total), this.none, this.cards, this.rows, el("div", { class: "line" }, this.more, this.others, this.aside), this.otherRows);
    this.open = new Set();
    this.leaving = new Map(); // id → { ask, ended, until }
    attr(this.parentElement, "aria-labelledby", "needs-title");
  }

  redraw() {
    this.dispatchEvent(new CustomEvent("redraw", { bubbles: true }));
  }

  toggle(name) {
    if (!this.open.delete(name)) this.open.add(name);
    this.redraw();
  }

  draw(store, now) {
    this.store = store;
    const all = allAsks(store).filter((a) => !store.setAside.has(a.id));
    this.farewells(store, all, now);
    const own = all.filter((a) => mine(a, store, now)).sort(order);
    const rest = all.filter((a) => !mine(a, store, now)).sort(order);
    const ends = [...this.leaving.values()].map((x) => ({ ...x.ask, ended: x.ended }));
    // A card stays while somebody is in it, however much comes before it.
    const inside = /** @type {any} */ (document.activeElement?.closest(".card"))?.ask?.id;
    const most = this.room(own);
    const wanted = own.filter((a, i) => i < most || a.id === inside || (a.until && a.kind !== "key" && a.until - now < soon));
    const late = own.filter((a) => !wanted.includes(a));
    text(this.total, own.length ? count(own.length) : "");
    attr(this.none, "hidden", own.length + ends.length > 0);
    const hold = this.cards.contains(document.activeElement) || this.cards.matches(":hover");
    keyed(this.cards, ends.concat(wanted), (a) => (store.past ? "past " : "") + a.id, (a) => cardNode(a, this), (node, a) => drawCard(node, a, store, now, this), hold);
    const short = (list, at, shown) => keyed(at, shown ? list : [], (a) => a.id, (a) => this.row(a), (node, a) => this.drawRow(node, a, now), at.contains(document.activeElement));
    attr(this.more, "hidden", late.length === 0);
    attr(this.more, "aria-expanded", String(this.open.has("more")));
    text(this.more, t("more", { n: count(late.length) }));
    short(late, this.rows, this.open.has("more"));
    attr(this.others, "hidden", rest.length === 0);
    attr(this.others, "aria-expanded", String(this.open.has("others")));
    text(this.others, rest.length === 1 ? t("waits_for_others") : t("wait_for_others", { n: count(rest.length) }));
    short(rest, this.otherRows, this.open.has("others"));
    const put = store.past ? 0 : store.asks.filter((a) => store.setAside.has(a.id)).length;
    attr(this.aside, "hidden", put === 0);
    text(this.aside, t("show_aside", { n: count(put) }));
    store.waiting = own.length;
  }

  // room is how many cards leave nearly half of a screen to what is stuck and what moves (BOARD 1); a phone scrolls anyway.
  room(own) {
    if (innerWidth < 720) return cards;
    let left = this.closest("#middle").clientHeight * 0.55 - frameHeight;
    const fits = own.findIndex((a) => (left -= heightOf(a)) < 0);
    return Math.min(cards, Math.max(2, fits < 0 ? cards : fits));
  }

  // farewells keeps a card that somebody else answered for a moment, with who it was.
  farewells(store, all, now) {
    const here = new Set(all.map((a) => a.id));
    for (const ask of this.shown ?? []) {
      if (here.has(ask.id) || this.leaving.has(ask.id)) continue;
      const ended = store.ended.get(ask.id);
      if (ended && mine(ask, store, now)) this.leaving.set(ask.id, { ask, ended, until: now + toldFor });
    }
    for (const [id, x] of this.leaving) if (now >= x.until || here.has(id)) this.leaving.delete(id);
    this.shown = all;
  }

  row(a) {
    const row = el("button", { type: "button", class: "ask-row row", on: { click: () => openAsk(a, row) } }, glyph("needs-human"), foreign("", { class: "title" }), foreign("", { class: "who" }), el("span", { class: "elapsed" }));
    row.dataset.row = "";
    return row;
  }

  drawRow(row, a, now) {
    text(row.children[1], a.text || t("ask_" + a.kind));
    text(row.children[2], a.asker ? a.asker + " · " + a.ownerName : a.ownerName);
    text(row.children[3], a.until ? t("left", { time: duration(a.until - now) }) : a.at ? age(now - a.at) : "");
  }

  // next puts the focus into the first card, or the one after the focused one.
  next() {
    const all = [...this.cards.children];
    if (!all.length) {
      this.parentElement.focus();
      return;
    }
    const at = all.findIndex((c) => c.contains(document.activeElement));
    const card = all[(at + 1) % all.length];
    card.focus();
    card.scrollIntoView({ block: "nearest" });
  }
}

export function openAsk(a, row) {
  if (a.kind === "decision") {
    show("agenda");
    /** @type {any} */ (document.querySelector("as-agenda")).seek(a.decision);
  } else if (a.task) go("t", a.task, row);
  else if (a.message) go("m", a.message, row);
  else if (a.asker) go("a", a.asker, row);
}
customElements.define("as-needs", Needs);
