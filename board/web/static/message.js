// One message, or several that are one row.
import { attr, el, foreign, plain, text } from "./dom.js";
import { count, duration, messageID, roomOf, senderOf, targetOf, timeNode } from "./words.js";
import { stepCounts } from "./fold.js";
import { go } from "./route.js";
import { t } from "./strings.js";

const open = (m, row) => go(m.envelope.intent === "Delegate" && m.envelope.to ? "t" : "m", m.envelope.id, row);

// rowNode makes the row of what fold.js gives. act is told what somebody wants: (name, row).
export function rowNode(row, now, act) {
  const m = row.m;
  const node = el("li", { class: "message row", tabindex: -1, "data-intent": m.envelope.intent, "data-source": m.envelope.source, "data-kind": row.kind, on: {
    click: (e) => {
      if (e.target.closest("button") || !getSelection().isCollapsed) return;
      if (row.kind === "message") open(m, node);
      else act("fold", row.key);
    },
  } },
  el("div", { class: "pair" }, senderOf(m), el("span", { class: "arrow", role: "img", "aria-label": t("to_whom") }, "→"), targetOf(m)),
  el("div", { class: "when" }, timeNode(m.at, now, m.doubt), el("span", { class: "late" }), row.kind === "message" ? el("as-ticks") : ""),
  row.kind === "message" ? said(m, act) : folded(row, act));
  node.dataset.row = "";
  return node;
}

function said(m, act) {
  const e = m.envelope;
  const marks = [foreign(e.intent === "AgentText" ? t("says") : e.intent, { class: "intent" })];
  if (e.intent === "Delegate") marks.push(el("span", { class: "id" }, messageID(m)));
  if (e.re) {
    marks.push(el("button", { type: "button", class: "re", tabindex: -1, title: t("f_re"), on: { click: (ev) => go("m", e.re, ev.target.closest("[data-row]")) } }, "↳ ", el("span", { class: "id" }, shortOf(e.re))));
  }
  if (e.blobs?.length) marks.push(el("span", { class: "clip" }, t("n_attached", { n: count(e.blobs.length) })));
  return el("div", { class: "said-line" }, ...marks.flatMap((k) => [k, " "]), foreign("", { class: "text" }),
    el("button", { type: "button", class: "more", hidden: true, tabindex: -1, on: { click: () => act("more", m) } }, t("more_text")));
}

// shortOf is the last five characters of an id as the node writes them: Crockford's letters for the last 25 bits.
export function shortOf(id) {
  const hex = id.replaceAll("-", "");
  if (!/^[0-9a-f]{32}$/i.test(hex)) return id.slice(-6);
  let bits = parseInt(hex.slice(-7), 16) % 2 ** 25, out = "";
  for (let i = 0; i < 5; i++) {
    out = "0123456789abcdefghjkmnpqrstvwxyz"[bits % 32] + out;
    bits = Math.floor(bits / 32);
  }
  return out;
}

function folded(row, act) {
  return el("div", { class: "said-line" }, el("button", { type: "button", class: "fold inline", tabindex: -1, on: { click: () => act("fold", row.key) } }));
}

// drawRow brings a row up to what is known now. words are what somebody searched for.
export function drawRow(node, row, store, words, expanded) {
  attr(node, "class", "message row" + (row.head ? "" : " same") + (row.inside ? " inside" : "") + (row.fresh ? " fresh" : ""));
  const [pair, when, line] = node.children;
  if (row.m.envelope.room) text(pair.lastElementChild, roomOf(row.m.envelope.room));
  attr(pair, "hidden", !row.head);
  if (row.kind !== "message") {
    const button = line.firstElementChild;
    text(button, foldWords(row));
    attr(button, "aria-expanded", String(Boolean(row.open)));
    return;
  }
  const tiers = row.m.tiers ?? [];
  const mark = when.children[1], refused = tiers.some((x) => x.tier === "refused") && !tiers.some((x) => x.tier === "processed");
  attr(mark, "class", refused ? "refused" : "late");
  text(mark, refused ? t("tier_refused") : row.m.late ? t("late") : "");
  attr(mark, "title", row.m.late ? t("late_means") : null);
  when.lastElementChild.show(row.m.envelope, tiers, store.alone, store.past);
  const whole = expanded.get(row.m.envelope.id);
  const body = line.querySelector(".text");
  const shown = whole ?? textOf(row.m);
  const key = shown + "\n" + words;
  if (body.of !== key) {
    body.of = key;
    body.replaceChildren(...marked(shown, words));
  }
  attr(line, "data-whole", whole !== undefined);
  attr(line.querySelector(".more"), "hidden", whole !== undefined || !(shown.length > 220 || shown.split("\n", 4).length > 3));
}

function textOf(m) {
  const v = m.envelope.value;
  if (m.envelope.intent === "ToolCall" && v?.toolCallName) return v.toolCallName + (v.path ? " " + v.path : "");
  return m.text || v?.stepName || "";
}

function foldWords(row) {
  if (row.kind === "burst") return t("n_messages", { n: count(row.list.length) });
  if (row.kind === "repeat") return t("n_times", { n: count(row.list.length), words: row.m.text });
  return stepWords(row.list);
}

function stepWords(list) {
  const c = stepCounts(list);
  const parts = [];
  if (c.tools) parts.push(t("n_tools", { n: count(c.tools) }));
  if (c.steps) parts.push(t("n_steps", { n: count(c.steps) }));
  if (c.files) parts.push(t("n_files", { n: count(c.files) }));
  if (c.took >= 1000) parts.push(duration(c.took));
  return parts.join(", ");
}

// marked sets what was searched for apart.
export function marked(said, searched) {
  const words = plain(said);
  const wanted = searched.split(/\s+/).filter(Boolean).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!wanted.length || !words) return [words];
  return words.split(new RegExp("(" + wanted.join("|") + ")", "giu")).map((part, i) => (i % 2 ? el("mark", {}, part) : part));
}
