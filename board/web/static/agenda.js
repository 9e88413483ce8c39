// The state document: what main decided on, what it works on, plans and has done. Main writes it; a person's word about it,
// a new order included, goes to main as a message and stands here until main's document was written in knowledge of it.
import { attr, busy, el, foreign, keyed, text } from "./dom.js";
import { count, timeNode } from "./words.js";
import { ask, post } from "./feed.js";
import { newMsgID } from "./ids.js";
import { showWhy, whyNot } from "./refusals.js";
import { show } from "./route.js";
import { toast } from "./toast.js";
import { decisionCard, drawDecision } from "./decision.js";
import { modesPart } from "./standby.js";
import { drawItem, itemRow, line, saidOf, titleOf, wordRows } from "./agendaitem.js";
import { t } from "./strings.js";

const page = 50; // rows of a list at first, and how many more a press shows
const orderBytes = 48 << 10; // what a message may say of an order besides the move itself
const lists = ["current", "planned", "done"];

class Agenda extends HTMLElement {
  connectedCallback() {
    this.data = null;
    this.most = {};
    this.shown = {};
    this.dragging = false;
    this.own = {}; // by list: how many of this person's own moves are under way
    this.said = el("p", { class: "said", role: "status" });
    this.of = el("span", { class: "count" });
    this.off = el("p", { class: "off-line", hidden: true });
    this.intro = el("div", { class: "empty" }, el("p", {}, t("asking")));
    this.parts = {};
    for (const tab of ["decisions", ...lists]) this.addPart(tab);
    this.ask = this.askForm();
    this.modes = modesPart(this);
    this.append(
      el("div", { class: "head" }, el("h2", { id: "agenda-title" }, t("agenda")), this.of, el("span", { class: "spacer" }), el("button", { type: "button", class: "narrow", on: { click: () => show("mesh") } }, t("mesh"))),
      this.off, this.intro, ...Object.values(this.parts).map((p) => p.node), this.ask.node, this.modes, this.said);
  }

  addPart(tab) {
    const rows = el("ol", { class: "items" });
    const n = el("span", { class: "count" });
    const none = el("p", { class: "quiet" }, t("no_" + tab));
    const more = el("button", { type: "button", class: "fold", hidden: true, on: { click: () => { this.most[tab] = (this.most[tab] ?? page) + page * 4; this.fill(); } } });
    const held = el("p", { class: "held", hidden: true }, t("order_changed"), " ", el("button", { type: "button", on: { click: () => this.fill(true) } }, t("order_show")));
    const extra = tab === "decisions" ? el("details", { class: "resolved", hidden: true }, el("summary", {}, ""), el("ol", { class: "items" })) : "";
    const node = el("section", { class: "part", "data-part": tab, hidden: true, "aria-label": t("agenda_" + tab) }, el("h3", {}, t("agenda_" + tab), " ", n), held, none, rows, more, extra);
    this.parts[tab] = { node, rows, n, none, more, held, extra };
  }

  askForm() {
    const form = line(t("ask_main_hint"), t("ask_main"), (words, id, blobs) => this.say({ kind: "request", id: "free-request", text: words }, id, "", null, blobs));
    const answer = el("p", { class: "reviewed", hidden: true });
    const rows = el("ol", { class: "words-list" });
    return { form, answer, rows, node: el("section", { class: "part ask-main", "aria-label": t("ask_main") }, el("h3", {}, t("ask_main")), form, answer, rows) };
  }

  // changed asks for the document, now or when somebody looks.
  changed() {
    this.stale = true;
    if (this.hidden || !this.store) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), 80);
  }

  // load asks once at a time; who asks meanwhile gets what is newer than the question.
  load() {
    if (this.running) return (this.next ??= this.running.then(() => { this.next = null; return this.load(); }));
    this.running = this.fetch().finally(() => { this.running = null; });
    return this.running;
  }

  async fetch() {
    this.stale = false;
    try {
      this.data = await ask("document");
      this.failed = false;
    } catch {
      this.failed = true;
    }
    this.store.documentWords = new Set((this.data?.words ?? []).map((w) => w.id));
    this.fill();
  }

  draw(store, now) {
    this.store = store;
    if (this.hidden) return;
    this.now = now;
    const off = store.health(now) === "silent" || !store.loaded ? t("agenda_off_silent") : store.status?.main?.agent ? "" : t("agenda_off_main");
    if (this.off.textContent !== off) {
      text(this.off, off);
      attr(this.off, "hidden", !off);
      attr(this, "data-off", Boolean(off));
      this.fill();
    }
    if ((this.stale || !this.data) && !this.running && !(this.failed && now - this.tried < 4000)) {
      this.tried = now;
      this.load();
    }
  }

  get isOff() {
    return Boolean(this.off.textContent);
  }

  // seek shows a decision and puts the focus there, once it is here.
  seek(key) {
    this.wanted = key;
    this.fill();
  }

  // wordsOn are what people said about an item; an order is no word on it.
  wordsOn(key) {
    return (this.data?.words ?? []).filter((w) => w.ref === key && w.kind !== "reorder" && w.kind !== "mode" && w.kind !== "request");
  }

  // fill shows what is known. A list that somebody works in keeps its order, unless the change is theirs.
  fill(own = false) {
    const { doc, lists: of = {} } = this.data ?? {};
    const active = /** @type {HTMLElement} */ (this.contains(document.activeElement) ? document.activeElement : null);
    this.intro.hidden = Boolean(doc);
    if (!this.intro.hidden) this.introduce();
    text(this.of, doc ? t("agenda_as_of", { node: this.data.byName || this.data.by.slice(-6) }) : "");
    if (doc) this.of.append(" ", timeNode(this.data.at, this.now ?? Date.now()), doc.standby === true ? " · " + t("standby") : "");
    for (const tab of Object.keys(this.parts)) {
      const all = (of[tab] ?? []).map((e) => ({ ...e, tab, item: asItem(doc?.[tab]?.[e.index]) }));
      this.fillList(tab, tab === "decisions" ? all.filter((e) => e.item.status !== "resolved") : all, own);
      if (tab === "decisions") this.fillResolved(all.filter((e) => e.item.status === "resolved"));
    }
    this.fillAsk(doc);
    this.modes.draw();
    const wanted = this.wanted && /** @type {HTMLElement} */ (this.parts.decisions.rows.querySelector(`[data-key="${CSS.escape(this.wanted)}"]`));
    if (wanted) {
      this.wanted = "";
      wanted.scrollIntoView({ block: "center" });
      wanted.focus({ preventScroll: true });
    } else if (active && active !== document.activeElement && this.contains(active)) active.focus({ preventScroll: true });
  }

  fillList(tab, all, own) {
    const p = this.parts[tab];
    attr(p.node, "hidden", !this.data?.doc);
    text(p.n, all.length ? count(all.length) : "");
    p.none.hidden = all.length > 0;
    const before = this.shown[tab];
    const held = !own && !this.own[tab] && before && (busy(p.rows) || this.dragging) && moved(before, all);
    if (held) all = inOrder(before, all);
    p.held.hidden = !held;
    this.shown[tab] = all;
    const most = this.most[tab] ?? (tab === "done" ? 10 : page);
    const rows = all.slice(0, most);
    p.more.hidden = rows.length === all.length;
    text(p.more, t("more", { n: count(all.length - rows.length) }));
    const decision = tab === "decisions";
    keyed(p.rows, rows, (e) => e.key, (e) => (decision ? decisionCard(this, e) : itemRow(this, e)), (node, e) => {
      node.entry = e;
      (decision ? drawDecision : drawItem)(node, e, this);
    });
  }

  fillResolved(all) {
    const fold = this.parts.decisions.extra;
    fold.hidden = all.length === 0;
    text(fold.firstElementChild, t("agenda_resolved", { n: count(all.length) }));
    keyed(fold.lastElementChild, all.slice(0, 100), (e) => e.key, (e) => itemRow(this, e), (node, e) => { node.entry = e; drawItem(node, e, this); });
  }

  fillAsk(doc) {
    this.ask.form.draw(this.isOff);
    const free = doc?.freeRequest;
    attr(this.ask.answer, "hidden", !free?.reviewedText);
    if (free?.reviewedText) this.ask.answer.replaceChildren(el("b", {}, t("main_on_it")), " ", foreign(saidOf(free.reviewedText)));
    wordRows(this.ask.rows, (this.data?.words ?? []).filter((w) => w.kind === "request").slice(-5), this.now);
  }

  introduce() {
    if (!this.data) this.intro.replaceChildren(el("p", {}, t(this.failed ? "look_failed" : "asking")));
    else this.intro.replaceChildren(el("p", { class: "first" }, t("agenda_none")), el("p", {}, t("agenda_how")), el("pre", {}, el("code", {}, '{"current": [{"id": "t1", "title": "…"}],\n "planned": [], "done": [],\n "decisions": [{"id": "d1", "question": "…", "kind": "choice", "options": ["…", "…"]}]}')));
  }

  // say gives a word to main. It returns null, or why it was not said.
  async say(value, msgId, done = "", undo = null, blobs = []) {
    if (this.isOff) return { words: this.off.textContent, own: "" };
    try {
      await post("send", { intent: "OperatorFeedback", value: { ...value, at: Date.now() }, msgId, ...(blobs.length ? { blobs } : {}), fromBoard: true });
    } catch (err) {
      return whyNot(err, "not_sent", t("not_sent_silent"));
    }
    await this.load();
    if (done) toast(done, undo, value.kind === "reorder" ? "move" : "");
    return null;
  }

  // move puts an item before another of its list ("": at the end), as a wish that main is told.
  async move(tab, key, before, undone = false) {
    const all = this.shown[tab];
    const from = all.findIndex((e) => e.key === key);
    if (from < 0 || before === key || all[from].fixed) return;
    const was = all[from + 1]?.key ?? "";
    if (before === was && !undone) return;
    const rest = all.filter((e) => e.key !== key);
    const at = before ? rest.findIndex((e) => e.key === before) : rest.length;
    if (at < 0) return;
    const order = [...rest.slice(0, at), all[from], ...rest.slice(at)].filter((e) => !e.fixed).map((e) => e.key);
    const value = { kind: "reorder", tab, order, moved: { id: key, before } };
    if (new TextEncoder().encode(JSON.stringify(order)).length > orderBytes) value.order = order.slice(Math.max(0, order.indexOf(key) - 20), order.indexOf(key) + 200);
    const title = titleOf(all[from].item);
    this.own[tab] = (this.own[tab] ?? 0) + 1;
    const no = await this.say(value, newMsgID(Date.now()), undone ? t("move_undone", { title }) : t("moved_to", { title, n: count(at + 1), of: count(all.length) }),
      undone ? null : { label: t("undo"), act: () => this.move(tab, key, was, true) });
    this.own[tab]--;
    if (no) return this.tell(no);
    this.parts[tab].rows.querySelector(`[data-key="${CSS.escape(key)}"]`)?.scrollIntoView({ block: "nearest" });
  }

  // shift moves by one place, or to an end of what is shown.
  shift(e, how) {
    const all = this.shown[e.tab];
    const at = all.findIndex((x) => x.key === e.key);
    const next = (i) => all.slice(i).find((x) => !x.fixed)?.key ?? "";
    if (how === "up" && at > 0) return this.move(e.tab, e.key, all.slice(0, at).findLast((x) => !x.fixed)?.key ?? e.key);
    if (how === "down" && at < all.length - 1) return this.move(e.tab, e.key, next(at + 2));
    if (how === "first") return this.move(e.tab, e.key, next(0));
    if (how === "last") return this.move(e.tab, e.key, "");
  }

  tell(no) {
    attr(this.said, "data-tone", "bad");
    showWhy(this.said, no);
    toast(no.words);
  }
}
customElements.define("as-agenda", Agenda);

// asItem takes what main wrote as it is: an object, or a line.
const asItem = (x) => (x && typeof x === "object" ? x : { title: saidOf(x) });

const moved = (before, now) => {
  const place = new Map(now.map((e, i) => [e.key, i]));
  let last = -1;
  for (const e of before) {
    const at = place.get(e.key);
    if (at === undefined) continue;
    if (at < last) return true;
    last = at;
  }
  return false;
};

// inOrder keeps the places of what was shown; what is new comes last.
const inOrder = (before, now) => {
  const left = new Map(now.map((e) => [e.key, e]));
  const out = [];
  for (const { key } of before) {
    if (left.has(key)) out.push(left.get(key));
    left.delete(key);
  }
  return out.concat([...left.values()]);
};
