// Words of others as elements. The node has parsed them into a tree of allowed kinds; nothing here reads markup.
import { el, foreign } from "./dom.js";
import { t } from "./strings.js";

const tags = { p: "p", h: "h4", ul: "ul", ol: "ol", li: "li", quote: "blockquote", pre: "pre", code: "code", em: "em", strong: "strong", br: "br", hr: "hr" };

// wordsNode shows what was said: as the tree that the node made of it, else as plain text. A value that holds more is
// there as a whole behind it.
export function wordsNode(m) {
  const value = m.envelope.value;
  if (!m.words) return [foreign(pretty(value) || m.text, { class: "words" })];
  const out = [el("div", { class: "words tree", dir: "auto" }, ...m.words.map(node))];
  if (fields(value).length > 1) out.push(el("details", { "data-part": "value" }, el("summary", {}, t("all_fields")), foreign(JSON.stringify(value, null, 2), { class: "words output" })));
  return out;
}

function node(w) {
  if (!w.k) return w.t ?? "";
  const kids = w.k === "pre" ? [w.t ?? ""] : (w.c ?? []).map(node);
  if (w.k === "link") return el("a", { href: /^https?:\/\//.test(w.h) ? w.h : null, title: w.h, target: "_blank", rel: "noopener noreferrer" }, ...kids);
  const tag = tags[w.k];
  return tag ? el(tag, w.k === "ol" && w.t ? { start: w.t } : {}, ...kids) : el("span", {}, ...kids);
}

const fields = (value) => (value && typeof value === "object" ? Object.keys(value).filter((k) => k !== "promptId" && k !== "re_msgId") : []);

function pretty(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const keys = fields(value);
  if (keys.length === 1 && typeof value[keys[0]] === "string") return value[keys[0]];
  return JSON.stringify(value, null, 2);
}
