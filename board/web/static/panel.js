// Details of one message, task, agent or node, at its own address: reload, Back and a pasted link show it again.
import { attr, el, foreign, text } from "./dom.js";
import { ask, post } from "./feed.js";
import { bodies, openStates } from "./details.js";
import { proofNode } from "./proof.js";
import { showWhy, whyNot } from "./refusals.js";
import { begin, leave, where } from "./route.js";
import { t } from "./strings.js";

const kinds = { t: "task", m: "message", a: "agent", n: "node" };

class Panel extends HTMLElement {
  connectedCallback() {
    this.heading = el("h2", { tabindex: -1, id: "details-title" });
    const button = (key, act, label) => el("button", { type: "button", title: label, on: { click: act } }, t(key));
    this.copy = button("copy_link", () => this.copyLink(), "y");
    this.why = button("records_button", () => this.records(), "w");
    this.closer = el("button", { type: "button", class: "close", "aria-label": t("close"), title: t("close"), on: { click: () => this.close() } }, "×");
    this.said = el("span", { class: "said", role: "status" });
    this.proof = el("section", { class: "proof", hidden: true, "aria-label": t("records_button") });
    this.main = el("div", { class: "facts" });
    this.body = el("div", { class: "body" }, this.proof, this.main);
    this.append(el("div", { class: "head" }, this.heading, this.said, el("span", { class: "spacer" }), this.why, this.copy, this.closer), this.body);
    attr(this.parentElement, "aria-labelledby", "details-title");
  }

  get shown() {
    return !this.parentElement.hidden;
  }

  // follow shows what the address names, or nothing.
  follow(focus) {
    const { kind, id } = where();
    if (kind === this.kind && id === this.id) return;
    this.parentElement.hidden = !kind;
    document.body.classList.toggle("has-details", Boolean(kind));
    this.kind = kind;
    this.id = id;
    this.fetched = this.thread = this.history = null;
    this.historyOf = "";
    this.drawn = "";
    this.fetchedFor = "";
    this.asking = this.missing = false;
    this.sure = "";
    this.proof.hidden = true;
    text(this.said, "");
    attr(this.copy, "hidden", !navigator.clipboard);
    attr(this.why, "hidden", !(kind === "m" || kind === "t"));
    if (!kind) return;
    text(this.heading, t(kinds[kind]));
    this.main.replaceChildren();
    this.body.scrollTop = 0;
    if (this.store) this.draw(this.store, this.now);
    if (focus) this.heading.focus({ preventScroll: true });
  }

  close() {
    if (!this.shown) return;
    const id = this.found(this.store)?.id ?? this.id;
    const from = leave();
    // A row may have moved to another list meanwhile: then the new one is meant.
    const row = from?.isConnected ? from : [...document.querySelectorAll("[data-row]")].find((/** @type {HTMLElement} */ r) => r.dataset.key === String(id));
    /** @type {HTMLElement} */ (row ?? document.getElementById("work")).focus({ preventScroll: Boolean(row) });
  }

  async copyLink() {
    await navigator.clipboard.writeText(location.href);
    text(this.said, t("copied"));
  }

  // records shows the record behind a message, and whose signature covers it.
  async records() {
    if (!this.proof.hidden) {
      this.proof.hidden = true;
      return;
    }
    const id = this.id;
    try {
      const got = await ask("messages/" + encodeURIComponent(id) + "/proof");
      if (id === this.id) this.proof.replaceChildren(...proofNode(got, this.now, this.store));
    } catch (err) {
      const said = el("p", { class: "quiet" });
      showWhy(said, whyNot(err, "past_refused", t("look_failed")));
      this.proof.replaceChildren(said);
    }
    this.proof.hidden = false;
    this.body.scrollTop = 0;
  }

  // found takes what the page has, and asks the node once for what it has not, or for a task's reports.
  found(store) {
    const is = (whole, short) => whole === this.id || short === this.id || short === this.id.replace(/^[tm]-/, "");
    switch (this.kind) {
      case "a": return store.agents.find((a) => a.id === this.id);
      case "n": return store.peers.find((p) => p.peer === this.id);
      case "t": {
        if (this.past !== store.past) { // its reports are of another moment
          this.past = store.past;
          this.fetchedFor = "";
          this.fetched = null;
          this.missing = false;
        }
        const task = [...store.tasks.values()].find((x) => is(x.id, x.short));
        const wanted = (task?.state ?? "?") + (task?.summary ?? "");
        if (this.fetchedFor !== wanted && (task || !this.fetched)) {
          this.fetchedFor = wanted;
          this.fetch("tasks/");
        }
        return task ? { ...this.fetched, ...task, reports: this.fetched?.reports } : this.fetched;
      }
      case "m": {
        const m = store.window.items.findLast((x) => is(x.envelope.id, x.short));
        if (this.past !== store.past) { // who answers is of another moment
          this.past = store.past;
          this.fetched = null;
          this.missing = false;
        }
        if (!this.fetched) this.fetch("messages/");
        if (store.past && this.fetched?.at > store.past) return null;
        return this.fetched ? { ...this.fetched, waits: m ? m.waits : this.fetched.waits, tiers: m?.tiers ?? this.fetched.tiers.filter((x) => !store.past || (x.at && x.at <= store.past)) } : m;
      }
    }
  }

  async fetch(path) {
    if (this.asking) return;
    this.asking = true;
    const id = this.id, past = this.store.past;
    const name = encodeURIComponent(id);
    const of = (param) => (past ? "?" + param + "=" + past : "");
    try {
      const got = await ask(path + name + (path === "tasks/" ? of("at") : ""));
      const thread = await ask("messages/" + name + "/thread" + of("until")).catch(() => null);
      if (id !== this.id || past !== this.store.past) {
        this.asking = false;
        this.draw(this.store, this.now);
        return;
      }
      this.fetched = got;
      this.thread = thread;
      this.asking = false;
    } catch {
      this.asking = false;
      if (id !== this.id || past !== this.store.past) return; // asked once: what is not here stays not here until the panel is opened again
    }
    this.missing = true;
    this.draw(this.store, this.now);
  }

  draw(store, now) {
    this.store = store;
    this.now = now;
    if (!this.shown) return;
    const it = this.found(store);
    if (!it) {
      const words = this.asking && !this.missing ? t("asking") : t(store.past ? "past_not_found" : "not_found", { what: this.id });
      if (this.drawn !== words) this.main.replaceChildren(foreign(words, { class: "quiet" }));
      this.drawn = words;
      return;
    }
    // What shows an age draws each second, but never under a selection.
    const ages = this.kind === "a" || (this.kind === "t" && openStates.has(it.state)) || (this.kind === "n" && !it.self && !it.linked);
    const key = JSON.stringify(it) + this.sure + store.alone + store.off + store.past + (this.thread?.messages.length ?? "") + (this.history?.samples.length ?? "") + (ages ? Math.floor(now / 1000) : "");
    const selecting = !getSelection().isCollapsed && this.body.contains(getSelection().anchorNode);
    if (key === this.drawn || (selecting && this.drawn)) return;
    this.drawn = key;
    const active = this.main.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.act : null;
    const opened = [...this.main.querySelectorAll("details[open]")].map((d) => d.dataset.part);
    const scroll = this.body.scrollTop;
    this.main.replaceChildren(...bodies[this.kind](it, store, now, this));
    for (const part of opened) this.main.querySelector(`details[data-part="${CSS.escape(part ?? "")}"]`)?.setAttribute("open", "");
    this.body.scrollTop = scroll;
    for (const b of this.main.querySelectorAll("[data-act=begin], [data-act=yes], [data-act=renew]")) /** @type {any} */ (b).disabled = store.off;
    if (active) this.main.querySelector(`[data-act=${active}]`)?.focus({ preventScroll: true });
  }

  // askSure asks once, in place, naming the effect.
  askSure(what) {
    this.sure = what;
    this.draw(this.store, this.now);
    this.main.querySelector(what ? "[data-act=no]" : "[data-act=begin]")?.focus();
  }

  // askCancel: a task that has ended is not asked about.
  askCancel() {
    if (openStates.has(this.found(this.store)?.state)) {
      this.askSure("cancel");
      this.main.querySelector("[data-act=yes]")?.focus();
    }
  }

  // does posts, and says why not.
  async does(path, body, done) {
    this.sure = "";
    try {
      const got = await post(path, body);
      text(this.said, done(got) ?? "");
    } catch (err) {
      showWhy(this.said, whyNot(err, "not_done", t("not_done", { reason: t("no_answer"), hint: "" })));
    }
    this.drawn = "";
    this.draw(this.store, this.now);
  }
}
customElements.define("as-panel", Panel);
begin(() => /** @type {any} */ (document.querySelector("as-panel"))?.follow(true));
