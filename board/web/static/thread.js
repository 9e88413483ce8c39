// The details of a message: what it says, whom it reached, its attachments, and the thread it belongs to.
import { el, foreign } from "./dom.js";
import { bytes, count, messageID, roomOf, senderOf, targetOf, timeNode } from "./words.js";
import { attachments } from "./attach.js";
import { codeWords } from "./refusals.js";
import { laterTiers } from "./marks.js";
import { wordsNode } from "./markdown.js";
import { go, select, travel } from "./route.js";
import { t } from "./strings.js";

const tiers = ["logged", "replicated", "persisted", "processed"];

export function facts(rows) {
  const dl = el("dl");
  for (const [name, value] of rows) {
    if (value === "" || value === null || value === undefined || value === false) continue;
    dl.append(el("dt", {}, t("f_" + name)), el("dd", {}, typeof value === "string" ? foreign(value) : value));
  }
  return dl;
}

export const code = (s) => (s ? foreign(s, { class: "code" }) : "");

// byWhom names who says that a message came so far: an agent, or a node by its name.
function byWhom(got, store) {
  if (!got) return "";
  if (got.agent) return got.agent;
  return got.by ? store.peer(got.by)?.name || "…" + got.by.slice(-6) : "";
}

// refusedBy says who refused it and why: the code's line, with the code itself to hover over.
function refusedBy(no, store) {
  const by = byWhom(no, store);
  return el("span", { class: "by" }, by ? foreign(by) : "", by && no.reason ? " · " : "", foreign(codeWords(no.reason) || no.reason || "", { title: no.reason || null }));
}

// waitsText says what a message to another board waits for.
const waitsText = (w) => t(w.for === "board" || !w.room ? "waits_board" : "waits_" + w.for, { room: w.room ? roomOf(w.room).slice(1) : "", board: w.board });

// receipts say how far a message came, and what it may yet come to: of what never will be there is no row. over: it is about
// something that has ended, so nothing more is awaited.
export function receipts(e, list, store, now, over = false) {
  const later = over ? [] : laterTiers(e, list);
  const rows = tiers.filter((tier) => later.includes(tier) || list.some((x) => x.tier === tier)).map((tier) => {
    const got = list.find((x) => x.tier === tier);
    const at = got ? (got.at ? timeNode(got.at, now) : t("reached")) : el("span", { class: "quiet" }, tier === "replicated" && store.past ? t("tick_unrecorded") : tier === "replicated" && store.alone ? t("tick_alone") : t("not_reached"));
    return el("li", { "data-on": got ? "yes" : "no" }, el("span", {}, t("tier_" + tier)), at, foreign(byWhom(got, store), { class: "by" }));
  });
  for (const no of list.filter((x) => x.tier === "refused")) {
    rows.push(el("li", { "data-on": "bad" }, el("span", {}, t("tier_refused")), timeNode(no.at, now), refusedBy(no, store)));
  }
  return [el("h3", {}, t("receipts")), el("ol", { class: "receipts" }, ...rows)];
}

export function messageBody(m, store, now, panel) {
  const e = m.envelope;
  const who = e.from || t(e.source === "server" ? "node_speaks" : "person", { node: m.nodeName || "" });
  const [before, after] = t("words_of", { who: "\u0000" }).split("\u0000");
  const via = e.from && store.agents.find((a) => a.id === e.from)?.home !== m.node ? t("via_node", { node: m.nodeName || "" }) : "";
  const act = (name, key, f) => el("button", { type: "button", "data-act": name, on: { click: f } }, t(key));
  const acts = el("p", { class: "acts" });
  if (e.from && !store.past && store.agents.some((a) => a.id === e.from)) acts.append(act("reply", "reply", () => dispatchEvent(new CustomEvent("act", { detail: { name: "reply-to", to: e.from, re: e.id, short: messageID(m) } }))));
  if (e.thread) acts.append(act("filter", "thread_messages", () => select({ thread: e.thread })));
  if (m.at) acts.append(act("around", "around", () => select({}, m.at)));
  if (m.at && !store.past) acts.append(act("replay", "replay_then", () => travel(m.at)));
  return [
    el("h3", {}, before, foreign(who), after ?? "", via ? " " : "", via ? foreign(via, { class: "quiet" }) : ""),
    ...wordsNode(m),
    ...attachments(m),
    acts,
    facts([["intent", e.intent], ["to", e.room ? roomOf(e.room) : e.to || t("everybody")], ["at", timeNode(m.at, now, m.doubt)],
      ["re", e.re ? el("button", { type: "button", class: "link-button code", on: { click: () => go("m", e.re) } }, e.re) : ""],
      ["id", code(messageID(m) + "  " + e.id)], ["thread", code(e.thread)], ["room", e.room && roomOf(e.room) !== "#" + e.room ? code(e.room) : ""], ["size", e.value === undefined ? "" : bytes(JSON.stringify(e.value).length)]]),
    ...receipts(e, m.tiers ?? [], store, now),
    m.waits && !store.past && !m.tiers?.some((x) => x.tier === "refused") ? el("p", { class: "quiet", "data-waits": m.waits.for }, foreign(waitsText(m.waits))) : "",
    ...(panel.thread?.messages.length > 1 ? threadNodes(panel.thread, e.id, store, now) : []),
  ];
}

// threadNodes lists a thread, oldest first; the message that is open is marked.
export function threadNodes(thread, id, store, now) {
  const file = (as) => "/api/v1/messages/" + encodeURIComponent(id) + "/export?as=" + as + (store.past ? "&until=" + store.past : "");
  const save = (as, key) => el("a", { class: "button", href: file(as), download: "", "data-act": "save-" + as }, t(key));
  return [el("h3", {}, t("thread"), " ", el("span", { class: "count" }, count(thread.messages.length) + (thread.cut ? "+" : ""))),
    el("ol", { class: "thread" }, ...thread.messages.map((m) => el("li", { "aria-current": m.envelope.id === id ? "true" : null },
      el("button", { type: "button", class: "thread-row", "data-act": "m" + m.pos, on: { click: () => go("m", m.envelope.id) } },
        el("span", { class: "pair" }, senderOf(m), el("span", { class: "arrow" }, "→"), targetOf(m), el("span", { class: "spacer" }), timeNode(m.at, now, m.doubt)),
        foreign(m.envelope.intent, { class: "intent" }), " ", foreign(m.text, { class: "text" }))))),
    el("p", { class: "acts" }, save("md", "save_md"), save("jsonl", "save_jsonl"))];
}
