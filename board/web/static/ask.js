// One card of Needs you: the question, its clock with what it does, who asks, and the answers with what they do.
import { attr, el, foreign, text } from "./dom.js";
import { age, countdown } from "./words.js";
import { post, Refused } from "./feed.js";
import { newMsgID } from "./ids.js";
import { showWhy, whyNot } from "./refusals.js";
import { toast } from "./toast.js";
import { glyph } from "./marks.js";
import { openAsk } from "./needs.js";
import { t } from "./strings.js";

const glyphs = { approval: "risk", key: "queued" };

export function cardNode(a, needs) {
  const card = el("article", { class: "card", tabindex: -1, "data-ask": a.kind, on: { keydown: (e) => {
    if (e.key !== "Enter" || e.target !== card) return;
    e.preventDefault();
    if (card.openWords) card.openWords();
    else openAsk(card.ask, card);
  } } }, el("div", { class: "card-head" }, glyph(glyphs[a.kind] ?? "needs-human"), foreign("", { class: "question" }), foreign("", { class: "clock" })),
  el("div", { class: "card-line" }, el("p", { class: "from" }), el("div", { class: "acts" })), el("div", { class: "answers" }), el("p", { class: "said", role: "status" }));
  card.dataset.row = "";
  card.ask = a;
  card.picked = new Set();
  return card;
}

// drawCard changes words only; the answers are made once, so that focus and what was typed stay.
export function drawCard(card, a, store, now, needs) {
  card.ask = a;
  const [head, line, answers] = card.children;
  const [from, acts] = line.children;
  text(head.children[1], questionOf(a));
  text(head.children[2], a.until && !a.ended ? clockWords(a, now) : "");
  attr(head.children[2], "data-late", Boolean(a.until && a.until - now < 120e3 && a.kind !== "key"));
  attr(card, "aria-label", questionOf(a));
  if (a.ended) {
    from.of = "";
    text(from, endedWords(a, store));
    acts.replaceChildren();
    answers.replaceChildren();
    attr(card, "data-ended", true);
    return;
  }
  const key = [a.asker, a.nodeName, a.taskShort, a.at ? age(now - a.at) : ""].join("\n");
  if (from.of !== key) {
    from.of = key;
    from.replaceChildren(a.asker ? foreign(a.asker, { class: "name" }) : "", " ", foreign([a.nodeName === a.asker ? "" : a.nodeName, a.taskShort, a.at ? age(now - a.at) : ""].filter(Boolean).join(" · ")));
  }
  if (!card.made) {
    card.made = true;
    acts.append(...actsOf(a, card, store, needs));
    if (store.past) answers.append(...optionsThen(a));
    else answers.append(...answersOf(a, card, store, needs));
  }
  card.off = store.off;
  drawSend(card);
}

export function questionOf(a) {
  if (a.kind === "key") return t("ask_key_text", { label: a.text });
  return a.text || t("ask_" + a.kind);
}

function clockWords(a, now) {
  if (now >= a.until) return t("clock_over"); // its asker's node is about to say so
  const time = countdown(a.until - now);
  if (a.kind === "key") return t("clock_key", { time });
  if (a.kind === "approval") return t("clock_denied", { time });
  return a.default ? t("clock_default", { time, what: a.default }) : t("clock_goes_on", { time });
}

function endedWords(a, store) {
  const e = a.ended;
  const what = (e.labels ?? []).join(", ");
  if (e.how === "answered") {
    if (a.kind === "decision") return e.by && store.answered.has(e.by) ? t("decision_told", { what: shownAs(a, what) }) : what ? t("ended_by_with", { node: e.nodeName || "", what: shownAs(a, what) }) : t("ended_by", { node: e.nodeName || "" });
    if (e.by && store.answered.has(e.by)) return what ? t("ended_mine_with", { what }) : t("ended_mine");
    if (store.answeredAsks.has(a.id)) return t("ended_second", { node: e.nodeName || "", what });
    return what ? t("ended_by_with", { node: e.nodeName || "", what }) : t("ended_by", { node: e.nodeName || "" });
  }
  if (e.how === "cancelled") return t("ended_cancelled");
  return e.how === "denied-fail-closed" ? t("ended_denied") : t("ended_default", { what: a.default || "" });
}

const button = (label, act, props = {}) => el("button", { type: "button", ...props, on: { click: act } }, label);

// optionsThen names what could be answered; in the past nothing can.
const optionsThen = (a) => (a.options?.length ? [el("p", { class: "quiet" }, t("options_then"), ...a.options.flatMap((o, i) => [i ? " · " : " ", foreign(shownAs(a, o.label))]))] : []);

// shownAs is an answer as it is read: those that main has not written itself are in this page's language.
const shownAs = (a, label) => (a.kind === "decision" && (label === "approve" || label === "reject") ? t("decide_" + label) : label);
const detailOf = (a, o) => [o.detail, a.recommend && o.label === a.recommend ? t("is_recommended") : ""].filter(Boolean).join(" · ");

// actsOf are what can be done beside answering.
function actsOf(a, card, store, needs) {
  const quiet = { class: "quiet-button" };
  const out = [];
  if (store.past) {
    if (a.kind !== "decision" && (a.task || a.message || a.asker)) out.push(button(t(a.task ? "open_task" : a.message ? "open_message" : "open_agent"), () => openAsk(a, card), quiet));
    return out;
  }
  if (a.free) out.push(button(t(a.options?.length ? "answer_other" : "answer"), () => card.openWords(), a.options?.length ? quiet : {}));
  if (a.kind === "key") out.push(button(t("key_renew"), () => renew(card, store, needs), { "data-sends": true }));
  if (a.kind === "person") out.push(button(t("open_agent"), () => openAsk(a, card)));
  else if (a.kind === "decision" || a.task || a.message) out.push(button(t(a.kind === "decision" ? "open_agenda" : a.task ? "open_task" : "open_message"), () => openAsk(a, card), quiet));
  if (!a.until || a.kind === "key") out.push(button(t("set_aside"), () => setAside(card, store, needs), quiet));
  return out;
}

// answersOf are the options, and a line for words of one's own that opens when it is wanted.
function answersOf(a, card, store, needs) {
  const out = [];
  if (a.options?.length) {
    out.push(el("div", { class: "options" }, ...a.options.map((o, i) => el("button", { type: "button", class: "option", "data-sends": true, "data-choice": o.label, "data-pick": i + 1, on: { click: () => pick(card, o.label, store, needs) } },
      el("kbd", {}, String(i + 1)), foreign(shownAs(a, o.label), { class: "label" }), detailOf(a, o) ? foreign(detailOf(a, o), { class: "detail" }) : ""))));
  }
  if (!a.free && !a.many) return out;
  const send = () => answer(card, [...card.picked], words.value.trim(), store, needs);
  const words = el("input", { type: "text", hidden: !a.free, placeholder: t("answer_words"), "aria-label": t("answer_words"), on: {
    input: () => drawSend(card),
    keydown: (e) => {
      if (e.key === "Enter" && !e.isComposing) { e.preventDefault(); send(); }
      if (e.key === "Escape") { e.stopPropagation(); line.hidden = !a.many; card.focus(); }
    },
  } });
  const line = el("div", { class: "line", hidden: !a.many }, words, button(t("send_answer"), send, { "data-sends": true, "data-needs": "words" }));
  card.openWords = () => { line.hidden = false; words.focus(); };
  return out.concat(line);
}

function drawSend(card) {
  const words = card.querySelector("input[type=text]")?.value.trim();
  for (const b of card.querySelectorAll("[data-sends]")) b.disabled = Boolean(card.off || card.sending || (b.dataset.needs && !words && card.picked.size === 0));
}

function setAside(card, store, needs) {
  const id = card.ask.id;
  store.setAside.add(id);
  store.keepAside();
  needs.redraw();
  toast(t("aside_done"), { label: t("undo"), act: () => { store.setAside.delete(id); store.keepAside(); needs.redraw(); } });
}

// pick chooses; with one answer only, choosing sends, but a risk is sent by a second press that names it.
export function pick(card, label, store, needs) {
  const a = card.ask;
  if (a.many) {
    if (!card.picked.delete(label)) card.picked.add(label);
    for (const b of card.querySelectorAll(".option")) attr(b, "aria-pressed", String(card.picked.has(b.dataset.choice)));
    drawSend(card);
    return;
  }
  if (a.kind === "approval" && card.sure !== label) {
    card.sure = label;
    for (const b of card.querySelectorAll(".option")) attr(b, "aria-pressed", String(b.dataset.choice === label));
    tell(card, "wait", { words: t("press_again", { what: label }), own: "" });
    return;
  }
  answer(card, [label], "", store, needs);
}

// messageOf is the answer as a message, by the kind of what was asked.
function messageOf(a, labels, words) {
  const said = [labels.join(", "), words].filter(Boolean).join(": ");
  if (a.kind === "decision") return { intent: "OperatorFeedback", value: decided(a, labels[0] ?? "", words) };
  if (a.prompt) return { to: a.asker, intent: "SelectionAnswer", re: a.message, value: { promptId: a.prompt, selectedLabels: labels, ...(words ? { freeText: words } : {}) } };
  return { to: a.asker, intent: "UserPrompt", re: a.message, value: { text: said, re_msgId: a.message } };
}

// decided is a person's word on a decision of the state document. It is resolved when main's document says so.
export function decided(a, choice, words) {
  const accept = choice && (choice === a.recommend || choice === "approve") ? { accept: true } : choice === "reject" ? { accept: false } : {};
  return { kind: "decision", id: a.decision, question: a.text, choice, text: words, ...accept, at: Date.now() };
}

async function answer(card, labels, words, store, needs) {
  const a = card.ask;
  if (card.sending || (!labels.length && !words)) return;
  card.sending = true;
  const id = (card.msgId ??= newMsgID(Date.now()));
  store.answered.add(id);
  store.answeredAsks.add(a.id);
  try {
    const got = await post("send", { ...messageOf(a, labels, words), msgId: id, fromBoard: true });
    toast(t("answer_sent", { id: got.short, agent: a.asker || t("main_is") }));
    store.asksChanged();
  } catch (err) {
    store.answeredAsks.delete(a.id);
    card.msgId = null;
    if (err instanceof Refused && err.refusal.code === "selection-closed") store.asksChanged();
    tell(card, "bad", whyNot(err, "not_sent", t("not_sent_silent")));
  } finally {
    card.sending = false;
    needs.redraw();
  }
}

async function renew(card, store, needs) {
  try {
    await post("keys/" + encodeURIComponent(card.ask.key) + "/renew");
    toast(t("key_renewed", { label: card.ask.text }));
    store.asksChanged();
  } catch (err) {
    tell(card, "bad", whyNot(err, "not_done", t("not_sent_silent")));
  }
  needs.redraw();
}

function tell(card, tone, why) {
  const said = card.lastElementChild;
  attr(said, "data-tone", tone);
  showWhy(said, why);
}
