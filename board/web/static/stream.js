// Messages as they are logged. The list stays at its end only while the reader is there.
import { attr, el, foreign, keyed, text } from "./dom.js";
import { count, messageID, senderOf, targetOf, timeNode } from "./words.js";
import { rowsMax } from "./store.js";
import { ask } from "./feed.js";
import { t } from "./strings.js";
import { go } from "./panel.js";

const page = 100;
const pairWithin = 120e3; // a pair within 2 min shares a head (BOARD 3)

class Stream extends HTMLElement {
  connectedCallback() {
    this.title_ = el("h2", { id: "messages-title" }, t("messages"));
    this.older = el("button", { type: "button", class: "fold", hidden: true, on: { click: () => this.loadOlder() } }, t("older"));
    this.first = el("p", { class: "quiet", hidden: true }, t("beginning"));
    this.none = el("p", { class: "quiet", hidden: true }, t("no_messages"));
    this.list = el("ol", { class: "messages" });
    this.scroller = el("div", { class: "scroller", on: { scroll: () => this.looked() } }, this.older, this.first, this.none, this.list);
    this.pill = el("button", { type: "button", class: "pill", hidden: true, on: { click: () => this.toEnd() } });
    this.append(el("div", { class: "head" }, this.title_), this.scroller, this.pill);
    this.atEnd = true;
    this.unseen = 0;
    new ResizeObserver(() => this.stick()).observe(this.scroller);
    attr(this.parentElement, "aria-labelledby", "messages-title");
  }

  stick() {
    if (this.atEnd && !this.store?.detached) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  looked() {
    const s = this.scroller;
    this.atEnd = s.scrollHeight - s.scrollTop - s.clientHeight < 24;
    if (this.atEnd && !this.store?.detached) {
      this.unseen = 0;
      this.drawPill();
    }
  }

  async loadOlder() {
    const first = this.store.messages[0];
    if (!first || this.loading) return;
    this.loading = true;
    try {
      const s = this.scroller;
      const fromEnd = s.scrollHeight - s.scrollTop;
      const got = await ask("messages?limit=" + page + "&before=" + first.pos);
      this.atEnd = false;
      this.store.older(got.messages);
      this.store.flush();
      s.scrollTop = s.scrollHeight - fromEnd;
    } catch { /* the frame says that the node does not answer; the button stays */ } finally {
      this.loading = false;
    }
  }

  async toEnd() {
    if (this.store.detached) {
      try {
        const got = await ask("messages?limit=" + page);
        this.store.newest(got.messages);
        this.store.flush();
      } catch { return; }
    }
    this.unseen = 0;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.atEnd = true;
    this.drawPill();
  }

  drawPill() {
    const n = this.store.detached ? this.store.detached : this.unseen;
    attr(this.pill, "hidden", n === 0);
    text(this.pill, this.store.detached ? t("newest") : t("n_new", { n: count(n) }));
  }

  draw(store, now) {
    this.store = store;
    const list = store.messages;
    attr(this.none, "hidden", list.length > 0);
    attr(this.older, "hidden", list.length === 0 || store.reachedFirst);
    attr(this.first, "hidden", list.length === 0 || !store.reachedFirst);
    let before = null;
    keyed(this.list, list, (m) => m.pos, (m) => this.row(m, store, now), (row, m) => {
      this.drawMessage(row, m, before, store);
      before = m;
    });
    // One stop for Tab, the newest row; j and k go on from there.
    const last = this.list.lastElementChild;
    if (this.stop !== last) {
      if (this.stop) attr(this.stop, "tabindex", -1);
      if (last) attr(last, "tabindex", 0);
      this.stop = last;
    }
    if (!this.atEnd) this.unseen = Math.min(this.unseen + store.fresh.size, rowsMax);
    store.fresh.clear();
    this.stick();
    this.drawPill();
  }

  row(m, store, now) {
    const open = el("button", { type: "button", class: "id", tabindex: -1, on: { click: () => go("m", m.envelope.id, row) } }, messageID(m));
    const row = el("li", { class: "message row", tabindex: -1, "data-intent": m.envelope.intent, "data-source": m.envelope.source, on: {
      click: (e) => {
        if (!e.target.closest("button") && getSelection().isCollapsed) go("m", m.envelope.id, row);
      },
    } },
    el("div", { class: "pair" }, senderOf(m), el("span", { class: "arrow", "aria-label": "→" }, "→"), targetOf(m)),
    el("div", { class: "meta" }, timeNode(m.at, now, m.doubt), foreign(m.envelope.intent, { class: "intent" }), open,
      el("span", { class: "spacer" }), el("as-ticks")),
    foreign(m.text, { class: "text" }));
    row.dataset.row = "";
    if (store.fresh.has(m.pos)) row.classList.add("fresh");
    return row;
  }

  drawMessage(row, m, before, store) {
    const [pair, meta, said] = row.children;
    const a = before?.envelope, b = m.envelope;
    attr(pair, "hidden", Boolean(a && a.from === b.from && a.to === b.to && a.source === b.source && before.node === m.node && m.at - before.at < pairWithin));
    meta.lastElementChild.show(m.tiers ?? [], store.alone);
    text(said, m.text);
    attr(said, "hidden", !m.text);
  }
}
customElements.define("as-stream", Stream);
