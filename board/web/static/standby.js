// The modes of the state document: what main says of itself, and standby, which a person may wish to be otherwise. The wish goes
// to main as a message, and stands here until main's document was written in knowledge of it.
import { el, foreign, keyed, text } from "./dom.js";
import { newMsgID } from "./ids.js";
import { saidOf, wordRows } from "./agendaitem.js";
import { t } from "./strings.js";

const named = new Set(["liveBoard", "wsRealtime", "autopilot", "newAgentAutoJoin"]);
const monitors = new Set(["active", "watching", "idle"]);
const most = 12; // modes that are shown

// modesOf are the lines about main's own modes: [what, how].
function modesOf(doc) {
  const out = monitors.has(doc.monitor) ? [[t("monitor"), t("monitor_" + doc.monitor)]] : [];
  const modes = doc.modes && typeof doc.modes === "object" && !Array.isArray(doc.modes) ? Object.entries(doc.modes) : [];
  for (const [name, is] of modes.slice(0, most)) {
    const how = is === true ? t("mode_on") : is === false ? t("mode_off") : saidOf(is);
    if (how) out.push([named.has(name) ? t("mode_" + name) : name, how]);
  }
  return out;
}

export function modesPart(agenda) {
  const box = el("input", { type: "checkbox", "aria-describedby": "standby-about", on: { change: () => (node.sends ? hold() : wish(box.checked)) } });
  const about = el("p", { class: "quiet", id: "standby-about" });
  const said = el("ol", { class: "words-list" });
  const modes = el("ul", { class: "modes" });
  const node = /** @type {any} */ (el("section", { class: "part", "data-part": "modes", hidden: true, "aria-label": t("modes") }, el("h3", {}, t("modes")), el("label", { class: "switch" }, box, " ", t("standby_label")), about, said, modes));
  const hold = () => { box.checked = !box.checked; }; // one wish at a time
  const wish = async (standby, undo = true) => {
    node.sends = true;
    const no = await agenda.say({ kind: "mode", standby }, newMsgID(Date.now()), t(standby ? "standby_told_on" : "standby_told_off"), undo ? { label: t("undo"), act: () => wish(!standby, false) } : null);
    node.sends = false;
    node.draw();
    if (no) agenda.tell(no);
  };
  node.draw = () => {
    const doc = agenda.data?.doc;
    node.hidden = !doc;
    if (!doc) return;
    const known = typeof doc.standby === "boolean";
    const word = (agenda.data.words ?? []).findLast((w) => w.kind === "mode" && typeof w.standby === "boolean");
    const waits = Boolean(word && word.open && word.tier !== "refused" && word.standby !== doc.standby);
    if (!node.sends) {
      box.checked = waits ? word.standby : doc.standby === true;
      box.indeterminate = !waits && !known;
    }
    box.disabled = agenda.isOff;
    node.dataset.waits = String(waits);
    text(about, t(waits ? (word.standby ? "standby_wished_on" : "standby_wished_off") : !known ? "standby_unknown" : doc.standby ? "standby_is_on" : "standby_is_off"));
    wordRows(said, word ? [word] : [], agenda.now);
    keyed(modes, modesOf(doc), ([what]) => what, () => el("li", {}, foreign("", { class: "quiet" }), " ", foreign("")), (row, [what, how]) => {
      text(row.children[0], what);
      text(row.children[1], how);
    });
  };
  return node;
}
