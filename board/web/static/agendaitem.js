// A row of the state document: what it is, how far, what people said about it, and the ways to move it: a handle for the
// pointer, Alt and arrows, buttons for the finger.
import { attr, el, foreign, keyed, text } from "./dom.js";
import { timeNode } from "./words.js";
import { newMsgID } from "./ids.js";
import { go } from "./route.js";
import { showWhy } from "./refusals.js";
import { grip } from "./drag.js";
import { takesFiles } from "./attaching.js";
import { t } from "./strings.js";

const moves = [["up", "↑"], ["down", "↓"], ["first", "⤒"], ["last", "⤓"]];
export const saidOf = (x) => (typeof x === "string" || typeof x === "number" ? String(x) : "");
export const titleOf = (x) => saidOf(x.title) || saidOf(x.question) || saidOf(x.id) || saidOf(x.ref);
const ordered = new Set(["current", "planned", "decisions"]);

// line is a field and a button that say one thing to main, with files that are chosen, dropped or pasted. All of it stays until it
// was taken.
export function line(hint, label, send, props = {}) {
  const words = el("textarea", { rows: 1, placeholder: hint, "aria-label": hint, on: {
    input: () => { node.msgId = ""; text(said, ""); draw(); },
    keydown: (e) => {
      if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && !e.isComposing) { e.preventDefault(); act(); }
      if (e.key === "Escape") { e.stopPropagation(); words.blur(); const item = node.closest("li"); (item?.querySelector(".open") ?? item)?.focus(); }
    },
  } });
  const button = el("button", { type: "submit" }, label);
  const said = el("p", { class: "said", role: "status" });
  const files = /** @type {any} */ (el("as-attaching", { on: { attached: () => { node.msgId = ""; draw(); } } }));
  const attach = el("button", { type: "button", class: "attach", title: t("attach_how"), on: { click: () => files.pick.click() } }, t("attach"));
  const node = /** @type {any} */ (el("form", { class: "say", ...props, on: { submit: (e) => { e.preventDefault(); act(); } } }, words, attach, button, files, said));
  takesFiles(node, words, files);
  const draw = () => {
    attach.disabled = node.off;
    button.disabled = Boolean(node.off || node.sends || files.waits || !(words.value.trim() || files.refs.length || node.ready?.()));
  };
  const act = async () => {
    if (button.disabled) return;
    node.sends = true;
    draw();
    const sent = words.value, id = (node.msgId ||= newMsgID(Date.now()));
    const sentFiles = files.refs;
    const no = await send(sent.trim(), id, sentFiles);
    node.sends = false;
    if (!no && sentFiles.length) files.clear();
    if (!no && words.value === sent) words.value = ""; // what was written meanwhile is the next word
    if (!no && node.msgId === id) node.msgId = "";
    attr(said, "data-tone", no ? "bad" : "ok");
    showWhy(said, no ?? { words: t("word_sent"), own: "" });
    draw();
  };
  node.draw = (off = node.off) => {
    node.off = off;
    words.disabled = off;
    draw();
  };
  node.draw(false);
  return node;
}

// movers are the buttons behind "Move": they are there for who has neither a pointer to drag with nor keys.
export function movers(agenda, node) {
  return el("div", { class: "moves", hidden: true }, ...moves.map(([how, mark]) => el("button", { type: "button", "data-move": how, on: { click: () => agenda.shift(node().entry, how) } }, el("span", { "aria-hidden": "true" }, mark + " "), t("move_" + how))));
}

export function moveParts(agenda, e, node) {
  if (!ordered.has(e.tab) || e.item.status === "resolved") return [null, null, null];
  const menu = movers(agenda, node);
  const button = el("button", { type: "button", class: "mover", "aria-expanded": "false", on: { click: () => {
    menu.hidden = !menu.hidden;
    attr(button, "aria-expanded", String(!menu.hidden));
  } } }, t("move"));
  return [grip(agenda, node), button, menu];
}

export function altArrows(agenda, node) {
  return (ev) => {
    const how = { ArrowUp: "up", ArrowDown: "down", Home: "first", End: "last" }[ev.key];
    if (!ev.altKey || !how || ev.target.matches("textarea, input")) return;
    ev.preventDefault();
    ev.stopPropagation();
    if (ordered.has(node().entry.tab)) agenda.shift(node().entry, how);
  };
}

// once is a button that says one thing to main, and not again while main has not taken it; it keeps the focus meanwhile.
export function once(agenda, label, done, value, props = {}) {
  const button = /** @type {any} */ (el("button", { type: "button", ...props, on: { click: async () => {
    if (button.sends || button.waits) return;
    button.sends = true;
    drawOnce(button, agenda, false);
    const no = await agenda.say(value(), newMsgID(Date.now()), done);
    button.sends = false;
    drawOnce(button, agenda, button.waits);
    if (no) agenda.tell(no);
  } } }, label));
  return button;
}

export function drawOnce(button, agenda, waits, off = false) {
  button.waits = waits;
  button.disabled = agenda.isOff || off;
  attr(button, "aria-disabled", waits || button.sends ? "true" : null);
}

export function itemRow(agenda, e) {
  const at = () => node;
  const [handle, mover, menu] = moveParts(agenda, e, at);
  const open = el("button", { type: "button", class: "open", "data-row": true, "aria-expanded": "false", on: { click: () => toggle(node, agenda) } },
    foreign("", { class: "title" }), foreign("", { class: "project" }));
  const node = /** @type {any} */ (el("li", { class: "item", on: { keydown: altArrows(agenda, at) } },
    el("div", { class: "line" }, handle, open, el("span", { class: "stage" }), el("span", { class: "n-words" }), mover),
    el("p", { class: "reason", hidden: true }, foreign("")), menu, el("div", { class: "more-of", hidden: true })));
  return node;
}

function toggle(node, agenda) {
  const body = node.querySelector(".more-of");
  body.hidden = !body.hidden;
  attr(node.querySelector(".open"), "aria-expanded", String(!body.hidden));
  if (!body.hidden) drawItem(node, node.entry, agenda);
}

export function drawItem(node, e, agenda) {
  const x = e.item;
  const [titleNode, project] = node.querySelector(".open").children;
  text(titleNode, titleOf(x) || t("unknown"));
  text(project, projectOf(agenda, x));
  drawStage(node.querySelector(".stage"), e, agenda);
  const words = agenda.wordsOn(e.key);
  text(node.querySelector(".n-words"), words.length ? t(words.length === 1 ? "one_word" : "n_words", { n: words.length }) : "");
  const why = node.querySelector(".reason");
  const reason = reasonOf(x);
  text(why.firstElementChild, reason);
  why.hidden = !reason;
  attr(node, "data-tone", reason ? "wait" : null);
  drawMoves(node, e, agenda);
  const body = node.querySelector(".more-of");
  if (!body.hidden) drawBody(body, e, words, agenda);
}

export function drawMoves(node, e, agenda) {
  const all = agenda.shown[e.tab] ?? [], at = all.findIndex((o) => o.key === e.key);
  const off = agenda.isOff || Boolean(e.fixed);
  attr(node, "data-fixed", off);
  const mover = node.querySelector(".mover");
  if (!mover) return;
  mover.hidden = Boolean(e.fixed) || all.length < 2;
  mover.disabled = off;
  attr(mover, "aria-label", t("move_item", { title: titleOf(e.item) }));
  for (const b of node.querySelectorAll("[data-move]")) b.disabled = off || (/up|first/.test(b.dataset.move) ? at <= 0 : at < 0 || at === all.length - 1);
}

export function projectOf(agenda, x) {
  const id = saidOf(x.project);
  const known = (Array.isArray(agenda.data?.doc?.projects) ? agenda.data.doc.projects : []).find((p) => p && saidOf(p.id) === id);
  return saidOf(known?.name) || id;
}

// reasonOf is why an item does not go on, in main's words.
function reasonOf(x) {
  const by = saidOf(x.blockedBy) || (Array.isArray(x.blockedBy) ? x.blockedBy.map(saidOf).filter(Boolean).join(", ") : "");
  if (by) return t("blocked_by", { what: by });
  if (!x.blocked && !x.waiting) return "";
  return saidOf(x.blockReason) || saidOf(x.waiting) || saidOf(x.blocked) || t(x.blocked ? "task_blocked" : "item_waits");
}

function drawStage(node, e, agenda) {
  const x = e.item;
  const stages = (Array.isArray(x.stages) ? x.stages : []).filter((s) => s && typeof s === "object").slice(0, 12);
  const key = JSON.stringify([stages, x.when, x.at, x.commit, x.priority, e.tab]);
  if (node.dataset.of === key) return;
  node.dataset.of = key;
  if (stages.length) {
    const done = stages.filter((s) => s.status === "done").length;
    const now = stages.find((s) => s.status === "active");
    node.replaceChildren(el("span", { class: "bars", "aria-hidden": "true" }, ...stages.map((s) => el("i", { "data-stage": saidOf(s.status) }))), foreign(saidOf(now?.label), { class: "label" }), el("span", { class: "quiet" }, t("n_of", { n: done, of: stages.length })));
  } else if (e.tab === "done") {
    const when = Number(saidOf(x.at)) || Date.parse(saidOf(x.at) || saidOf(x.when));
    node.replaceChildren(saidOf(x.commit) ? foreign(saidOf(x.commit).slice(0, 7), { class: "commit" }) : "", when > 0 && when < 8.64e15 ? timeNode(when, agenda.now ?? 0) : foreign(saidOf(x.when) || saidOf(x.at)));
  } else node.replaceChildren();
}

// drawBody opens what main and people said about an item; what somebody writes there stays.
function drawBody(body, e, words, agenda) {
  const x = e.item;
  if (!body.childElementCount) {
    const form = line(t("say_on_item"), t("send_word"), (said, id, blobs) => agenda.say({ kind: "context-feedback", ctx: e.tab, refId: body.parentNode.entry.key, title: titleOf(body.parentNode.entry.item), text: said }, id, "", null, blobs));
    body.append(el("div", { class: "facts" }), el("ol", { class: "words-list" }), el("div", { class: "acts" }), form);
  }
  const [facts, list, acts, form] = body.children;
  const key = JSON.stringify(x);
  if (facts.dataset.of !== key) {
    facts.dataset.of = key;
    facts.replaceChildren(...factsOf(x));
  }
  wordRows(list, words, agenda.now);
  const proceeds = e.tab === "planned" && (x.blocked || x.waiting) && !e.fixed;
  if (!proceeds) acts.replaceChildren();
  else if (!acts.childElementCount) {
    acts.append(once(agenda, t("proceed"), t("proceed_sent"), () => ({ kind: "proceed", plannedId: body.parentNode.entry.key, title: titleOf(body.parentNode.entry.item) })));
  }
  for (const b of acts.children) drawOnce(b, agenda, words.some((w) => w.kind === "proceed" && w.open));
  form.hidden = Boolean(e.fixed);
  form.draw(agenda.isOff);
}

function factsOf(x) {
  const out = [];
  const add = (label, value) => { if (value) out.push(el("p", {}, el("span", { class: "quiet" }, label), " ", foreign(value))); };
  if (saidOf(x.detail)) out.push(foreign(saidOf(x.detail), { class: "detail-text" }));
  for (const [list, label] of [[x.sub, ""], [x.refs, "f_refs"], [x.followUps, "f_follow"]]) {
    const items = (Array.isArray(list) ? list : []).map((s) => saidOf(s) || (s && typeof s === "object" ? titleOf(s) || saidOf(s.label) || saidOf(s.text) : "")).filter(Boolean).slice(0, 50);
    if (!items.length) continue;
    if (label) out.push(el("p", { class: "quiet" }, t(label)));
    out.push(el("ul", {}, ...items.map((s) => el("li", {}, foreign(s)))));
  }
  add(t("f_unblock"), saidOf(x.unblock));
  add(t("f_proceed_note"), saidOf(x.proceedNote));
  add(t("f_reviewed"), saidOf(x.reviewedText));
  add(t("f_commit"), saidOf(x.commit));
  add(t("f_id"), saidOf(x.id) || saidOf(x.ref));
  return out.length ? out : [el("p", { class: "quiet" }, t("no_detail"))];
}

// wordRows are people's words with how far each came; a press opens the message itself.
export function wordRows(list, words, now) {
  keyed(list, words, (w) => w.id, (w) => {
    const row = el("button", { type: "button", class: "word", on: { click: () => go("m", w.id, row) } }, foreign("", { class: "text" }), el("span", { class: "quiet" }));
    return el("li", {}, row);
  }, (node, w) => {
    const [said, about] = node.firstElementChild.children;
    text(said, [w.kind === "mode" ? t(w.standby ? "standby_word_on" : "standby_word_off") : w.kind === "proceed" ? t("proceed") : w.kind === "fallback-rerender" ? t("rephrase") : w.choice, w.kind === "fallback-rerender" ? "" : w.text].filter(Boolean).join(": "));
    const key = w.tier + w.open + w.files;
    if (about.dataset.of === key) return;
    about.dataset.of = key;
    about.replaceChildren(foreign(t("person", { node: w.nodeName || w.node.slice(-6) })), " · ", timeNode(w.at, now ?? 0), " · ", t(!w.open ? "word_over" : w.tier === "processed" ? "word_processed" : w.tier === "persisted" ? "word_persisted" : w.tier === "refused" ? "tier_refused" : "word_logged"), ...(w.files ? [" · ", t("n_attached", { n: w.files })] : []));
  });
}
