// Tasks: blocked first, with the reason in the row; then what runs; then what is done.
import { attr, busy, el, foreign, steady, text } from "./dom.js";
import { age, ago, count, duration, taskID } from "./words.js";
import { glyph, taskGlyph } from "./marks.js";
import { t } from "./strings.js";
import { go, show } from "./route.js";
import { VList } from "./vlist.js";

const doneShown = 5; // BOARD 3
const stuckFor = 24 * 3600e3; // a failure older than a day is history

const failed = new Set(["failed", "interrupted", "refused"]);
const final = new Set(["done", "blocked", "cancelled", ...failed]);

export function partOf(task, now) {
  if (task.state === "blocked") return "blocked";
  if (failed.has(task.state)) return now - (task.ended || task.at) < stuckFor ? "blocked" : "done";
  if (task.state === "queued" || task.state === "delivered") return "queued"; // nobody has begun it
  return final.has(task.state) ? "done" : "running";
}

export function elapsed(task, now) {
  if (task.durationMs) return duration(task.durationMs);
  if (task.ended && task.started) return duration(task.ended - task.started);
  if (final.has(task.state)) return "";
  return age(now - (task.started || task.at));
}

export const diffNode = (diff) => [
  el("span", { class: "plus" }, "+" + count(diff.added)), " ", el("span", { class: "minus" }, "−" + count(diff.removed)),
];

// withoutDiff leaves out of a summary what the row says beside it.
const withoutDiff = (summary, diff) => (summary && diff ? summary.replace(/^\+\d+ [-−]\d+\s*/, "") : summary);

class Work extends HTMLElement {
  connectedCallback() {
    this.opened = new Set();
    this.title_ = el("h2", { id: "work-title" }, t("work"));
    this.empty = el("div", { class: "empty", role: "group", "aria-labelledby": "work-title" });
    this.parts = {};
    this.counts = el("div", { class: "counts" });
    this.append(el("div", { class: "head" }, this.title_, this.counts, el("span", { class: "spacer" }), el("button", { type: "button", class: "narrow", on: { click: () => show("agenda") } }, t("agenda"))), this.empty);
    for (const name of ["blocked", "running", "queued", "done"]) {
      const part = el("section", { class: "part", "data-part": name, "aria-labelledby": "part-" + name },
        el("h3", { id: "part-" + name }, el("span", {}, t(name)), " ", el("span", { class: "count" })),
        el("div", { class: "rows" }),
        el("p", { class: "quiet" }, name === "done" || name === "queued" ? "" : t("nothing_" + name)),
        el("button", { type: "button", class: "fold", hidden: true, on: { click: () => this.toggle(name) } }));
      this.parts[name] = part;
      part.vlist = new VList(this.closest("#middle"), part.children[1], { key: (x) => x.key, estimate: name === "blocked" ? 62 : 36, make: (x) => this.row(x.task), update: (row, x) => this.drawTask(row, x.task, this.now) });
      this.append(part);
      this.counts.append(this.countOf(name));
    }
    attr(this.parentElement, "aria-labelledby", "work-title");
  }

  // countOf is how many there are of a state, and the way to them.
  countOf(name) {
    const part = this.parts[name];
    return el("button", { type: "button", class: "link-button", "data-count": name, on: { click: () => {
      part.scrollIntoView({ block: "start" });
      part.querySelector(".row")?.focus({ preventScroll: true });
    } } });
  }

  toggle(name) {
    if (!this.opened.delete(name)) this.opened.add(name);
    this.dispatchEvent(new CustomEvent("redraw", { bubbles: true }));
  }

  draw(store, now) {
    this.now = now;
    this.store = store;
    const all = [...store.tasks.values()];
    this.drawEmpty(store, all);
    /** @type {Map<string, any[]>} */
    const by = Map.groupBy(all, (task) => partOf(task, now));
    for (const [name, part] of Object.entries(this.parts)) {
      const list = (by.get(name) ?? []).sort((a, b) =>
        name === "running" || name === "queued" ? a.at - b.at : (b.ended || b.at) - (a.ended || a.at));
      attr(part, "hidden", all.length === 0 || ((name === "done" || name === "queued") && list.length === 0));
      const [head, , none, fold] = part.children;
      text(head.lastElementChild, count(list.length));
      attr(none, "hidden", list.length > 0);
      attr(head, "class", list.length ? null : "of-none"); // the sentence says it
      const counted = this.counts.querySelector(`[data-count=${name}]`);
      text(counted, t("of_state", { n: count(list.length), state: t(name + "_few") }));
      attr(counted, "hidden", list.length === 0);
      const open = this.opened.has(name);
      const usual = name === "done" ? doneShown : list.length;
      const shown = list.slice(0, open ? list.length : usual);
      attr(fold, "hidden", list.length <= usual);
      attr(fold, "aria-expanded", list.length > usual ? String(open) : null);
      text(fold, open ? t("fewer") : t("more", { n: count(list.length - shown.length) }));
      part.vlist.set((part.last = steady(part.last, shown.map((task) => ({ key: task.id, task })), busy(this))));
    }
  }

  // drawEmpty is the first run: three steps that tick themselves, until something was delegated.
  drawEmpty(store, all) {
    const shown = all.length === 0;
    attr(this.empty, "hidden", !shown);
    attr(this.empty, "tabindex", shown ? 0 : null); // there is nothing else to take the focus, and it may scroll
    if (!shown) return;
    if (store.past) {
      if (this.empty.dataset.of !== "past") this.empty.replaceChildren(el("p", { class: "quiet" }, t("past_no_work")));
      this.empty.dataset.of = "past";
      return;
    }
    const agents = store.agents.length;
    const key = agents + "/" + (store.agents[0]?.id ?? "");
    if (this.empty.dataset.of === key) return;
    this.empty.dataset.of = key;
    const kids = [];
    if (agents < 2) {
      const url = el("code", {}, (location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/ws");
      const [before, after] = t("first_1", { url: "\u0000" }).split("\u0000");
      const step = (done, words, ...code) => el("li", { "data-done": done ? "yes" : "no" },
        glyph(done ? "done" : "idle"), el("div", {}, el("p", {}, ...words, done ? el("span", { class: "said" }, " · " + t("first_done")) : ""), ...code));
      kids.push(el("h3", { class: "first" }, t("first_title")), el("ol", { class: "steps" },
        step(agents >= 1, [before + (after ?? "")], url),
        step(agents >= 2, [t("first_2")], el("code", {}, "aster invite --role local")),
        step(false, [t("first_3")], el("code", {}, "aster delegate --to AGENT \"…\""))));
    }
    if (agents > 0) {
      const main = store.agents.find((a) => a.id !== store.status?.agent) ?? store.agents[0];
      const [before, after] = t("nothing_delegated", { agent: "\u0000" }).split("\u0000");
      kids.push(el("p", { class: "reading" }, before, foreign(main.id, { class: "name" }), after ?? ""));
    }
    this.empty.replaceChildren(...kids);
  }

  row(task) {
    const row = el("button", { type: "button", class: "task-row row", on: { click: () => go("t", task.id, row) } },
      glyph("unknown"),
      el("span", { class: "what" }, foreign(task.title, { class: "title" }), el("span", { class: "id" }, taskID(task))),
      foreign(task.to, { class: "agent" }), el("span", { class: "result" }, foreign("", { class: "stage" }), el("span", { class: "diff" }), el("span", { class: "commit" })),
      el("span", { class: "elapsed" }), el("span", { class: "reason" }, foreign(task.to, { class: "name" }), " ", el("span", { class: "word" }), foreign("")));
    row.dataset.row = "";
    return row;
  }

  drawTask(row, task, now) {
    const [mark, what, agent, result, took, reason] = row.children;
    const [stage, diff, commit] = result.children;
    attr(mark, "kind", taskGlyph[task.state] ?? "unknown");
    attr(row, "data-state", task.state);
    text(what.firstElementChild, task.title);
    attr(what.firstElementChild, "title", task.title);
    text(agent, task.to);
    text(reason.firstElementChild, task.to);
    const troubled = task.state === "blocked" || failed.has(task.state);
    const home = task.state === "queued" && !this.store.past ? this.store.peer(task.node) : null;
    const word = (home && !home.self && !home.linked ? t("task_unlinked", { node: home.name }) : t("task_" + task.state)) + (task.attempt > 1 ? " · " + t("attempt", { n: task.attempt }) : "");
    const says = task.state === "running" ? (task.tail ?? "").trimEnd().split("\n").at(-1) || task.summary : task.state === "done" ? withoutDiff(task.summary, task.diff) : "";
    const below = troubled && Boolean(task.summary); // then its word stands there, before the reason
    text(stage, says || word);
    attr(stage, "title", says || null);
    attr(stage, "hidden", below || (task.state === "done" && Boolean(task.diff || task.commit)));
    const shown = task.diff ? task.diff.added + "/" + task.diff.removed : "";
    if (diff.dataset.of !== shown) {
      diff.dataset.of = shown;
      diff.replaceChildren(...(task.diff ? diffNode(task.diff) : []));
    }
    text(commit, task.commit ? task.commit.slice(0, 7) : "");
    const over = final.has(task.state);
    text(took, over ? ago(now - (task.ended || task.at)) : elapsed(task, now));
    attr(took, "title", over ? elapsed(task, now) && t("f_took") + " " + elapsed(task, now) : duration(now - (task.started || task.at)));
    attr(row, "data-below", below);
    attr(agent, "hidden", below);
    attr(result, "hidden", below && !task.diff);
    text(reason.children[1], below ? word + ": " : "");
    text(reason.lastElementChild, below ? task.summary : "");
    attr(reason, "hidden", !below);
  }
}
customElements.define("as-work", Work);
