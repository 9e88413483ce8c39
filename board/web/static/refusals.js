// A refusal, as the page says it: in English in the node's own words; elsewhere in what its code says in this page's language,
// with the node's own words beneath.
import { el, foreign } from "./dom.js";
import { Refused } from "./feed.js";
import { language, t } from "./strings.js";
import { sentence } from "./words.js";

// codeWords is the table's line for a code, without a full stop; "" for a code that it does not know.
export function codeWords(code) {
  const key = "code_" + String(code ?? "").toLowerCase().replaceAll("-", "_");
  return t(key) === key ? "" : t(key);
}

// noOf splits what somebody was refused with: what the page says, and the node's own words where they are others. null: nobody
// refused it. What the page itself refuses (status 0) is in its language already.
export function noOf(err) {
  if (!(err instanceof Refused)) return null;
  const no = err.refusal, hint = sentence(no.hint);
  const line = language === "en" || err.status === 0 ? "" : codeWords(no.code);
  return line ? { reason: line, hint: "", own: [sentence(no.reason), hint].filter(Boolean).join(" ") } : { reason: no.reason, hint, own: "" };
}

// whyNot is a whole sentence of the table about what was refused, and the node's own words. silent is said when nobody answered.
export function whyNot(err, key, silent, values = {}) {
  const no = noOf(err);
  return no ? { words: t(key, { ...values, ...no }).trim(), own: no.own } : { words: silent, own: "" };
}

// showWhy puts it somewhere; the node's words fold.
export function showWhy(at, { words, own }) {
  at.replaceChildren(foreign(words), ...(own ? [" ", el("details", { class: "own-words" }, el("summary", {}, t("as_said")), foreign(own, { lang: "en" }))] : []));
}
