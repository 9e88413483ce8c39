// Details of one message, task, agent or node, at its own address: reload, Back and a pasted link show it again.
import { attr, el, foreign, text } from "./dom.js";
import { age, bytes, count, messageID, rtt, sentence, taskID, timeNode } from "./words.js";
import { ask, post, Refused } from "./feed.js";
import { glyph, taskGlyph } from "./marks.js";
import { diffNode, elapsed } from "./work.js";
import { linkOf, stateOf, underLine } from "./agents.js";
import { t } from "./strings.js";

let from = null; // the row that opened the panel: focus returns to it

// go shows the details of kind (t, m, a, n) and id.
export function go(kind, id, row = null) {
  from = row ?? document.activeElement;
  history.pushState(null, "", "/" + kind + "/" + encodeURIComponent(id));
  document.querySelector("as-panel").follow(true);
}

const kinds = { t: "task", m: "message", a: "agent", n: "node" };
const tiers = ["logged", "replicated", "persisted", "processed"];
const open = new Set(["queued", "delivered", "running"]);

class Panel extends HTMLElement {
  connectedCallback() {
    this.heading = el("h2", { tabindex: -1, id: "details-title" });
    this.copy = el("button", { type: "button", on: { click: () => this.copyLink() } }, t("copy_link"));
    this.closer = el("button", { type: "button", class: "close", "aria-label": t("close"), title: t("close"), on: { click: () => this.close() } }, "×");
    this.said = el("span", { class: "said", role: "status" });
    this.body = el("div", { class: "body" });
    this.append(el("div", { class: "head" }, this.heading, this.said, el("span", { class: "spacer" }), this.copy, this.closer), this.body);
    attr(this.parentElement, "aria-labelledby", "details-title");
    addEventListener("popstate", () => this.follow(false));
  }

  get shown() {
    return !this.parentElement.hidden;
  }

  // follow shows what the address names, or nothing.
  follow(focus) {
    const [, kind, id] = location.pathname.match(/^\/([tman])\/([^/]+)$/) ?? [];
    this.parentElement.hidden = !kind;
    document.body.classList.toggle("has-details", Boolean(kind));
    this.kind = kind;
    this.id = kind ? decodeURIComponent(id) : "";
    this.fetched = null;
    this.drawn = "";
    this.fetchedFor = "";
    this.asking = this.missing = this.sure = false;
    text(this.said, "");
    attr(this.copy, "hidden", !navigator.clipboard);
    if (!kind) return;
    text(this.heading, t(kinds[kind]));
    this.body.replaceChildren();
    if (this.store) this.draw(this.store, this.now);
    if (focus) this.heading.focus();
  }

  close() {
    if (!this.shown) return;
    const id = this.find(this.store)?.id ?? this.id;
    history.pushState(null, "", "/");
    this.follow(false);
    // A row may have moved to another list meanwhile: then the new one is meant.
    const row = from?.isConnected ? from : [...document.querySelectorAll("[data-row]")].find((r) => r.dataset.key === String(id));
    (row ?? document.getElementById("work")).focus();
    from = null;
  }

  async copyLink() {
    await navigator.clipboard.writeText(location.href);
    text(this.said, t("copied"));
  }

  // find takes what the page has, and asks the node once for what it has not, or for a task's reports.
  find(store) {
    const is = (whole, short) => whole === this.id || short === this.id || short === this.id.replace(/^[tm]-/, "");
    switch (this.kind) {
      case "a": return store.agents.find((a) => a.id === this.id);
      case "n": return store.peers.find((p) => p.peer === this.id);
      case "t": {
        const task = [...store.tasks.values()].find((x) => is(x.id, x.short));
        const wanted = task?.state ?? "?";
        if (this.fetchedFor !== wanted && (task || !this.fetched)) {
          this.fetchedFor = wanted;
          this.fetch("tasks/");
        }
        return this.fetched && task ? { ...task, reports: this.fetched.reports } : task ?? this.fetched;
      }
      case "m": {
        const m = store.messages.findLast((x) => is(x.envelope.id, x.short));
        if (!m && !this.fetched) this.fetch("messages/");
        return m ?? this.fetched;
      }
    }
  }

  async fetch(path) {
    if (this.asking) return;
    this.asking = true;
    const id = this.id;
    try {
      const got = await ask(path + encodeURIComponent(id));
      if (id !== this.id) return;
      this.fetched = got;
      this.asking = false;
    } catch {
      if (id !== this.id) return; // asked once: what is not here stays not here until the panel is opened again
    }
    this.missing = true;
    this.draw(this.store, this.now);
  }

  draw(store, now) {
    this.store = store;
    this.now = now;
    if (!this.shown) return;
    const it = this.find(store);
    if (!it) {
      const words = this.asking && !this.missing ? t("asking") : t("not_found", { what: this.id });
      if (this.drawn !== words) this.body.replaceChildren(foreign(words, { class: "quiet" }));
      this.drawn = words;
      return;
    }
    // What shows an age draws each second, but never under a selection.
    const ages = this.kind === "a" || (this.kind === "t" && open.has(it.state)) || (this.kind === "n" && !it.self && !it.linked);
    const key = JSON.stringify(it) + Boolean(this.sure) + store.alone + (ages ? Math.floor(now / 1000) : "");
    const selecting = !getSelection().isCollapsed && this.body.contains(getSelection().anchorNode);
    if (key === this.drawn || (selecting && this.drawn)) return;
    this.drawn = key;
    const active = this.body.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    const scroll = this.body.scrollTop;
    this.body.replaceChildren(...{ t: taskBody, m: messageBody, a: agentBody, n: nodeBody }[this.kind](it, store, now, this));
    this.body.scrollTop = scroll;
    if (active) this.body.querySelector(`[data-act=${active}]`)?.focus();
  }

  // askCancel asks once, in place; a task that has ended is not asked about.
  askCancel(sure) {
    if (!open.has(this.find(this.store)?.state)) return;
    this.sure = sure;
    this.draw(this.store, this.now);
    this.body.querySelector(sure ? "[data-act=yes]" : "[data-act=cancel]")?.focus();
  }

  async cancel(task) {
    this.sure = false;
    try {
      const got = await post("tasks/" + encodeURIComponent(task.id) + "/cancel");
      this.store.event({ type: "task", task: got }, this.now);
    } catch (err) {
      const no = err instanceof Refused ? err.refusal : { reason: t("reconnecting") };
      text(this.said, t("cancel_failed", { reason: no.reason, hint: sentence(no.hint) }));
    }
    this.drawn = "";
    this.draw(this.store, this.now);
  }
}
customElements.define("as-panel", Panel);

function facts(rows) {
  const dl = el("dl");
  for (const [name, value] of rows) {
    if (value === "" || value === null || value === undefined || value === false) continue;
    dl.append(el("dt", {}, t("f_" + name)), el("dd", {}, typeof value === "string" ? foreign(value) : value));
  }
  return dl;
}

const code = (s) => (s ? foreign(s, { class: "code" }) : "");

function receipts(list, alone, now) {
  const rows = tiers.map((tier) => {
    const got = list.find((x) => x.tier === tier);
    const at = got ? (got.at ? timeNode(got.at, now) : t("reached")) : el("span", { class: "quiet" }, tier === "replicated" && alone ? t("tick_alone") : t("not_reached"));
    return el("li", { "data-on": got ? "yes" : "no" }, el("span", {}, t("tier_" + tier)), at, foreign(got?.agent || got?.by?.slice(-6) || "", { class: "id" }));
  });
  for (const no of list.filter((x) => x.tier === "refused")) {
    rows.push(el("li", { "data-on": "bad" }, el("span", {}, t("tier_refused")), timeNode(no.at, now), foreign(no.reason ?? "")));
  }
  return [el("h3", {}, t("receipts")), el("ol", { class: "receipts" }, ...rows)];
}

function messageBody(m, store, now) {
  const e = m.envelope;
  const who = e.from || t("person", { node: m.nodeName || "" });
  const [before, after] = t("words_of", { who: "\u0000" }).split("\u0000");
  return [
    facts([["id", code(messageID(m) + "  " + e.id)], ["intent", e.intent], ["from", e.from || who], ["to", e.to || ""],
      ["at", timeNode(m.at, now, m.doubt)], ["re", code(e.re)],
      ["log", code((m.nodeName || m.node.slice(-6)) + " " + m.log.slice(-12) + " #" + m.seq)],
      ["attachments", (e.blobs ?? []).map((b) => (b.name || b.sha256.slice(0, 12)) + " " + bytes(b.bytes)).join(", ")]]),
    ...receipts(m.tiers ?? [], store.alone, now),
    el("h3", {}, before, foreign(who), after ?? ""),
    foreign(pretty(e.value) || m.text, { class: "words" }),
  ];
}

// pretty shows a value as its text where it has nothing else to say, else as indented JSON.
function pretty(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const keys = Object.keys(value).filter((k) => k !== "promptId");
  if (keys.length === 1 && typeof value[keys[0]] === "string") return value[keys[0]];
  return JSON.stringify(value, null, 2);
}

function taskBody(task, store, now, panel) {
  const state = el("span", { class: "with-glyph" }, glyph(taskGlyph[task.state] ?? "unknown"), t("task_" + task.state));
  const out = [foreign(task.title, { class: "words title" }), facts([
    ["state", state], ["summary", task.summary], ["id", code(taskID(task) + "  " + task.id)], ["from", task.from], ["to", task.to],
    ["home", task.nodeName], ["attempt", task.attempt > 1 ? String(task.attempt) : ""], ["at", timeNode(task.at, now)],
    ["started", task.started ? timeNode(task.started, now) : ""], ["ended", task.ended ? timeNode(task.ended, now) : ""],
    ["took", elapsed(task, now)], ["exit", task.exit === undefined ? "" : String(task.exit)],
    ["diff", task.diff ? el("span", {}, ...diffNode(task.diff)) : ""], ["files", code((task.diff?.paths ?? []).join("\n"))],
    ["commit", task.commit ? code(task.commit) : open.has(task.state) ? "" : t("no_commit")], ["branch", code(task.branch)], ["base", code(task.base)]])];
  if (task.commit) out.push(el("p", { class: "command" }, el("code", {}, "aster task fetch " + taskID(task))));
  if (open.has(task.state)) {
    const act = (name, key, cls, f) => el("button", { type: "button", class: cls, "data-act": name, on: { click: f } }, t(key));
    out.push(panel.sure
      ? el("div", { class: "sure" }, el("p", {}, t("cancel_sure", { id: taskID(task) })),
        act("yes", "cancel_yes", "danger", () => panel.cancel(task)), act("no", "cancel_no", "", () => panel.askCancel(false)))
      : el("p", {}, act("cancel", "cancel_task", "", () => panel.askCancel(true))));
  }
  if (task.tail) out.push(el("h3", {}, t("output")), foreign(task.tail, { class: "words output" }));
  out.push(...receipts(task.tiers ?? [], store.alone, now));
  if (task.reports?.length) {
    out.push(el("h3", {}, t("report_list")), el("ol", { class: "reports" }, ...task.reports.map((m) =>
      el("li", {}, timeNode(m.at, now, m.doubt), foreign(m.text)))));
  }
  return out;
}

function agentBody(a, store, now) {
  return [foreign(a.id, { class: "words title" }), facts([
    ["state", el("span", { class: "with-glyph" }, glyph(stateOf(a, store)), foreign(underLine(a, store, now)))],
    ["role", a.role], ["home", a.node], ["wakes", a.wakes || t("wakes_unknown")], ["unread", count(a.unread)],
    ["attached", (a.attached ?? []).join(", ")], ["since", a.since ? timeNode(a.since, now) : ""]])];
}

function nodeBody(p, store, now) {
  const own = p.self ? store.status : null;
  return [foreign(p.name, { class: "words title" }), facts([
    ["id", code(p.peer)], ["role", p.role], ["link", linkOf(p)], ["addr", code(p.addr)], ["gossip", p.self ? "" : p.alive],
    ["seen", !p.self && !p.linked ? (p.lastSeen ? t("as_of", { time: age(now - p.lastSeen) }) : t("as_of_unknown")) : ""],
    ["behind", p.self ? "" : count(p.behind)], ["until", p.until ? timeNode(p.until, now) : ""], ["revoked", p.revoked ? t("f_yes") : ""],
    ["version", p.version || own?.version], ["board", code(p.board || own?.board)]])];
}
