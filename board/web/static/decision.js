// A decision of the state document that is open: its question, what main recommends, and a person's answer. The answer goes to main;
// the decision is resolved when main's document says so, and until then it may be answered again.
import { attr, el, foreign, keyed, text } from "./dom.js";
import { altArrows, drawMoves, drawOnce, line, moveParts, once, projectOf, saidOf, titleOf, wordRows } from "./agendaitem.js";
import { decided } from "./ask.js";
import { t } from "./strings.js";

export function decisionCard(agenda, e) {
  const at = () => node;
  const [handle, mover, menu] = moveParts(agenda, e, at);
  const form = line(t("answer_words"), t("send_answer"), (words, id, blobs) => answer(node, agenda, words, id, blobs), { class: "say" });
  form.ready = () => Boolean(node.picked);
  const rephrase = once(agenda, t("rephrase"), t("rephrase_sent"), () => ({ kind: "fallback-rerender", id: node.entry.key, question: saidOf(node.entry.item.question), label: titleOf(node.entry.item) }), { class: "quiet-button" });
  const node = /** @type {any} */ (el("li", { class: "card decision", tabindex: 0, "data-row": true, on: { keydown: altArrows(agenda, at) } },
    el("div", { class: "card-head" }, handle, el("as-glyph", { kind: "needs-human" }), foreign("", { class: "question" }), mover), menu,
    el("div", { class: "facts" }), el("div", { class: "options" }), form, el("ol", { class: "words-list" })));
  form.lastElementChild.before(rephrase);
  node.picked = "";
  return node;
}

// optionsOf are the answers that can be picked: [what is said, what is shown beside it].
function optionsOf(x) {
  const given = (Array.isArray(x.options) ? x.options : []).map((o) => (o && typeof o === "object" ? [saidOf(o.label) || saidOf(o.id) || saidOf(o.title), saidOf(o.detail) || saidOf(o.description)] : [saidOf(o), ""])).filter(([label], i, all) => label && all.findIndex(([o]) => o === label) === i);
  if (given.length) return given.slice(0, 20);
  if (x.kind === "approval") return [["approve", ""], ["reject", ""]];
  return saidOf(x.recommend) && x.kind !== "choice" ? [[saidOf(x.recommend), ""]] : [];
}

const shownAs = (label, x) => (x.kind === "approval" && !x.options?.length && (label === "approve" || label === "reject") ? t("decide_" + label) : label);
const recommended = (x) => saidOf(x.recommendChoice) || saidOf(x.recommend);

export function drawDecision(node, e, agenda) {
  const x = e.item;
  text(node.querySelector(".question"), saidOf(x.question) || titleOf(x));
  attr(node, "aria-label", t("agenda_decision") + ": " + (saidOf(x.question) || titleOf(x)));
  const key = JSON.stringify(x);
  if (node.dataset.of !== key) {
    node.dataset.of = key;
    const facts = node.querySelector(".facts");
    const project = projectOf(agenda, x);
    facts.replaceChildren(saidOf(x.detail) ? foreign(saidOf(x.detail), { class: "detail-text" }) : "", saidOf(x.recommend) ? el("p", {}, el("span", { class: "quiet" }, t("recommended")), " ", foreign(saidOf(x.recommend))) : "",
      saidOf(x.reviewedText) ? el("p", {}, el("span", { class: "quiet" }, t("f_reviewed")), " ", foreign(saidOf(x.reviewedText))) : "", project ? el("p", { class: "quiet" }, foreign(project)) : "");
    drawOptions(node, optionsOf(x), x);
  }
  const words = agenda.wordsOn(e.key);
  wordRows(node.querySelector(".words-list"), words, agenda.now);
  attr(node, "data-ended", words.some((w) => w.kind === "decision" && w.open) ? "told" : null);
  for (const b of node.querySelectorAll(".option")) b.disabled = agenda.isOff || Boolean(e.fixed);
  drawOnce(node.querySelector(".quiet-button"), agenda, words.some((w) => w.kind === "fallback-rerender" && w.open), Boolean(e.fixed));
  node.querySelector("form").draw(agenda.isOff || Boolean(e.fixed));
  drawMoves(node, e, agenda);
}

function drawOptions(node, options, x) {
  if (!options.some(([label]) => label === node.picked)) node.picked = "";
  const pick = (label) => {
    node.picked = node.picked === label ? "" : label;
    for (const b of node.querySelectorAll(".option")) attr(b, "aria-pressed", String(b.dataset.choice === node.picked));
    node.querySelector("form").msgId = "";
    node.querySelector("form").draw();
  };
  keyed(node.querySelector(".options"), options, ([label]) => label, ([label]) => el("button", { type: "button", class: "option", "data-choice": label, "aria-pressed": String(label === node.picked), on: { click: () => pick(label) } },
    el("kbd", {}, ""), foreign("", { class: "label" }), foreign("", { class: "detail" })), (b, [label, detail]) => {
    const i = options.findIndex(([o]) => o === label);
    text(b.children[0], i < 9 ? String(i + 1) : "");
    attr(b, "data-pick", i < 9 ? i + 1 : null);
    text(b.children[1], shownAs(label, x));
    text(b.children[2], [detail, label === recommended(x) ? t("is_recommended") : ""].filter(Boolean).join(" · "));
  });
}

async function answer(node, agenda, words, id, blobs) {
  const x = node.entry.item;
  const choice = node.picked;
  const here = node.contains(document.activeElement);
  const no = await agenda.say(decided({ decision: node.entry.key, text: saidOf(x.question), recommend: recommended(x) }, choice, words), id, "", null, blobs);
  if (!no) {
    node.picked = "";
    for (const b of node.querySelectorAll(".option")) attr(b, "aria-pressed", "false");
    // The button that was pressed is off now: its card takes the focus, unless it went elsewhere meanwhile.
    if (here && (node.contains(document.activeElement) || document.activeElement === document.body)) node.focus({ preventScroll: true });
  }
  return no;
}
