// The record behind a message: where it stands, and whose signature covers it. The node checked it just now.
import { el, foreign } from "./dom.js";
import { bytes, count, timeNode } from "./words.js";
import { code, facts } from "./thread.js";
import { glyph } from "./marks.js";
import { t } from "./strings.js";

export function proofNode(p, now, store) {
  const verdict = !p.signedBy ? ["unknown", t("proof_unsigned")] : p.holds ? ["done", t("proof_holds", { node: p.nodeName })] : ["failed", t("proof_fails")];
  return [el("h3", {}, t("record_of")), el("p", { class: "with-glyph" }, glyph(verdict[0]), foreign(verdict[1])),
    facts([["home", p.nodeName], ["peer", code(p.node)], ["logged", timeNode(p.wall, now)], ["hybrid", code(p.at)], ["log", code(p.log)], ["seq", count(p.seq)],
      ["size", bytes(p.bytes)], ["hash", code(p.hash)], ["prev", code(p.prev)], ["signed_by", p.signedBy ? "#" + count(p.signedBy) : ""], ["signature", code(p.sig ?? "")]]),
    el("ol", { class: "receipts" }, ...p.receipts.map((r) => el("li", {}, el("span", {}, t("tier_" + r.tier)), r.at ? timeNode(r.at, now) : "", foreign(r.agent || (r.by ? store.peer(r.by)?.name || r.by.slice(-6) : "")))))];
}
