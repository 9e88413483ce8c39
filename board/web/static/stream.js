// Messages as they are logged, or what a search, a filter or a moment selects. The list stays at its end only while the
// reader is there and neither pointer nor focus is in it.
import { attr, busy, el, text } from "./dom.js";
import { ago, count, roleOf } from "./words.js";
import { drawRow, rowNode } from "./message.js";
import { rowsOf } from "./fold.js";
import { VList } from "./vlist.js";
import { ask } from "./feed.js";
import { clear, select } from "./route.js";
import { t } from "./strings.js";
import "./search.js";

const near = 600; // px to an end at which more is asked for

class Stream extends HTMLElement {
  connectedCallback() {
    this.opened = new Set();
    this.expanded = new Map();
    this.fresh = new Set();
    this.count = el("span", { class: "count" });
    this.search = el("as-search");
    this.replay = el("button", { type: "button", class: "quiet-button open-replay", title: "t", on: { click: () => this.dispatchEvent(new CustomEvent("act", { bubbles: true, detail: "time" })) } }, t("replay"));
    this.above = el("p", { class: "edge quiet" });
    this.none = el("div", { class: "none", hidden: true });
    this.list = el("ol", { class: "messages" });
    this.below = el("p", { class: "edge quiet" });
    this.scroller = el("div", { class: "scroller", on: { pointerleave: () => this.released(), focusout: () => setTimeout(() => this.released()) } },
      this.above, this.none, this.list, this.below);
    this.pill = el("button", { type: "button", class: "pill", hidden: true, on: { click: () => this.toEnd() } });
    this.append(el("div", { class: "head" }, el("h2", { id: "messages-title" }, t("messages")), this.count, el("span", { class: "spacer" }), this.replay), this.search, this.scroller, this.pill);
    this.unseen = 0;
    this.vlist = new VList(this.scroller, this.list, {
      key: (row) => row.key, estimate: 62, make: (row) => rowNode(row, this.now, (name, what) => this.act(name, what)),
      update: (node, row) => {
        drawRow(node, row, this.store, this.window.filter.q ?? "", this.expanded);
        attr(node, "tabindex", row.key === this.stop ? 0 : -1);
      },
      sticks: () => this.window?.live && !this.window.filter.q && !this.held(),
      moved: () => this.moved(),
    });
    attr(this.parentElement, "aria-labelledby", "messages-title");
  }

  // held: somebody points at a row or works in one.
  held() {
    return busy(this.scroller);
  }

  released() {
    if (this.vlist.atEnd && !this.held()) {
      this.unseen = 0;
      this.vlist.draw();
      this.drawPill();
    }
  }

  act(name, what) {
    if (name === "fold") {
      if (!this.opened.delete(what)) this.opened.add(what);
      this.vlist.atEnd = false;
      this.draw(this.store, this.now);
    } else {
      this.more(what);
    }
  }

  async more(m) {
    let words = m.text;
    if (words.endsWith("…")) {
      try {
        words = (await ask("messages/" + encodeURIComponent(m.envelope.id))).text || words;
      } catch { /* what is here is shown */ }
    }
    this.expanded.set(m.envelope.id, words);
    this.vlist.atEnd = false;
    this.vlist.draw();
  }

  moved() {
    const s = this.scroller;
    if (this.vlist.atEnd && this.window.live) this.unseen = 0;
    if (s.scrollTop < near) this.window.older();
    if (s.scrollHeight - s.scrollTop - s.clientHeight < near) this.window.newer();
    this.drawPill();
  }

  toEnd() {
    this.unseen = 0;
    this.pill.blur();
    if (!this.window.live || this.window.since) {
      this.vlist.atEnd = true;
      select({}, 0);
      this.window.open(this.window.filter, 0).then(() => this.vlist.end());
    } else {
      this.vlist.end();
    }
    this.drawPill();
  }

  drawPill() {
    const w = this.window;
    const n = w.live ? this.unseen : w.missed;
    const away = !w.live && !w.filter.q;
    attr(this.pill, "hidden", !(n > 0 || away) || w.state === "asking");
    text(this.pill, n > 0 ? t("n_new", { n: count(n) }) : t("newest"));
  }

  came(m, added) {
    if (!added) return;
    this.fresh.add("m" + m.pos);
    if (!this.vlist.atEnd || this.held()) this.unseen++;
  }

  // beat is what a node's beat changes here, which is little: rows that nobody touched are not looked through for it.
  beat(store, now) {
    if (store !== this.store || store.alone !== this.alone) this.draw(store, now);
    else this.search.draw(store, now);
  }

  draw(store, now) {
    this.alone = store.alone;
    this.store = store;
    this.now = now;
    const w = (this.window = store.window);
    if (this.turn !== w.turn) { // something else is selected
      this.turn = w.turn;
      this.vlist.atEnd = !w.since;
      this.unseen = 0;
      this.started = false;
    }
    const rows = rowsOf(w.items, this.opened);
    for (const row of rows) row.fresh = this.fresh.has(row.key);
    if (!rows.some((row) => row.key === this.stop)) this.stop = rows.at(-1)?.key;
    this.search.draw(store, now);
    attr(this.replay, "hidden", Boolean(store.past));
    this.drawEdges(w);
    this.vlist.set(rows);
    if (w.state === "ready" && rows.length && !this.started) {
      this.started = true;
      const first = w.since ? rows.find((row) => row.m.at >= w.since) : null;
      if (first) this.vlist.show(first.key);
      else this.vlist.end();
    }
    if (this.fresh.size > 200) this.fresh.clear();
    this.drawPill();
  }

  // drawLast says how long ago the newest message was said: of a picture that is all that tells whether anything moves.
  drawLast(now) {
    const w = this.window;
    const last = w?.live && w.plain && !w.until ? w.items.at(-1) : null;
    text(this.count, last ? t("last_ago", { ago: ago(now - last.at) }) : "");
  }

  drawEdges(w) {
    const empty = w.items.length === 0;
    attr(this.above, "hidden", empty);
    text(this.above, w.before ? t("older_asking") : w.plain ? t("beginning") : t("beginning_found"));
    attr(this.below, "hidden", empty || !w.since || w.live);
    text(this.below, t("newer_asking"));
    attr(this.none, "hidden", !empty);
    const key = empty ? w.state + JSON.stringify(w.filter) + w.since + Boolean(w.until) + w.of : "";
    if (this.none.of === key) return;
    this.none.of = key;
    this.none.replaceChildren(...(empty ? this.nothing(w) : []));
  }

  // nothing says why there is nothing to see, and how to see something.
  nothing(w) {
    if (w.state === "asking") return [el("p", { class: "quiet" }, t("looking"))];
    if (w.state === "failed") return [el("p", {}, t("look_failed")), el("button", { type: "button", on: { click: () => w.open(w.filter, w.since) } }, t("look_again"))];
    if (w.plain) return [el("p", { class: "quiet" }, t(w.until ? "past_no_messages" : "no_messages"))];
    if (w.since && Object.keys(w.filter).length === 0) return [el("p", {}, t("none_since")), el("button", { type: "button", on: { click: () => clear() } }, t("newest"))];
    const f = w.filter;
    const parts = [];
    if (f.q) parts.push(t("none_has", { words: f.q }));
    for (const name of ["agent", "role", "intent", "thread", "task", "room"]) if (f[name]) parts.push(t("none_" + name, { value: name === "role" ? roleOf(f[name]) : f[name] }));
    const said = t("none_found", { n: count(w.of), what: parts.join(" ") });
    return [el("p", {}, el("bdi", {}, said)), el("p", { class: "remove" }, ...Object.keys(f).map((name) =>
      el("button", { type: "button", on: { click: () => select({ [name]: "" }) } }, t("remove_filter", { what: t("filter_" + name) }))))];
  }

  // place is what somebody reads, with its position in the journal; put shows it again where it was.
  place() {
    const read = this.vlist.reading();
    const row = this.vlist.items.find((r) => String(r.key) === read?.key);
    return row ? { ...read, pos: row.m?.pos ?? 0 } : null;
  }

  put(read) {
    this.started = true;
    this.vlist.atEnd = false;
    this.vlist.put(read);
  }

  step(by) {
    const row = this.vlist.beside(document.activeElement?.closest(".message") ?? null, by);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
    return Boolean(row);
  }
}
customElements.define("as-stream", Stream);
