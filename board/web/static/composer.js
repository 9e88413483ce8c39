// A person writes to an agent. The text and its message id are kept until the node says "logged": what is sent again
// after a lost answer is the same message.
import { attr, el, foreign, text } from "./dom.js";
import { takesFiles } from "./attaching.js";
import { post } from "./feed.js";
import { newMsgID } from "./ids.js";
import { showWhy, whyNot } from "./refusals.js";
import { noMain, wayOf } from "./words.js";
import { stateOf } from "./agents.js";
import { t } from "./strings.js";

const kept = "aster.draft";
const mac = /Mac|iPhone|iPad/.test(navigator.platform);

class Composer extends HTMLElement {
  connectedCallback() {
    this.to = el("select", { id: "compose-to", "aria-label": t("to"), on: { change: () => this.changed() } });
    const kind = (value, label) => el("label", {}, el("input", { type: "radio", name: "kind", value, on: { change: () => this.changed() } }), el("span", {}, label));
    this.kinds = el("div", { class: "kinds", role: "radiogroup", "aria-label": t("kind") }, kind("prompt", t("prompt")), kind("delegate", t("delegate")));
    this.words = el("textarea", { id: "compose-text", rows: 2, "aria-label": t("write"), on: {
      input: () => this.changed(),
      keydown: (e) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && !e.isComposing) { e.preventDefault(); this.send(); }
      },
    } });
    this.files = /** @type {any} */ (el("as-attaching", { on: { attached: () => this.changed() } }));
    this.button = el("button", { type: "submit", class: "primary" });
    this.said = el("p", { class: "said", role: "status", "aria-live": "polite" });
    this.re = null; // what is answered: { id, short }
    this.reLine = el("p", { class: "re-line", hidden: true }, el("span", {}), el("button", { type: "button", "aria-label": t("no_reply"), title: t("no_reply"), on: { click: () => this.answer(null) } }, "×"));
    this.form = el("form", { on: { submit: (e) => { e.preventDefault(); this.send(); } } },
      el("div", { class: "line" }, el("label", { for: "compose-to", class: "to" }, t("to")), this.to, this.kinds),
      this.reLine, this.words, this.files,
      el("div", { class: "line" }, el("button", { type: "button", class: "attach", title: t("attach_how"), on: { click: () => this.files.pick.click() } }, t("attach")), el("span", { class: "hint" }, t(mac ? "cmd_enter" : "ctrl_enter")), el("span", { class: "spacer" }), this.button),
      this.said);
    takesFiles(this.form, this.words, this.files, this);
    this.append(this.form);
    this.restore();
  }

  get kind() {
    return /** @type {HTMLInputElement} */ (this.querySelector("input[name=kind]:checked"))?.value ?? "prompt";
  }

  set kind(value) {
    /** @type {HTMLInputElement} */ (this.querySelector(`input[name=kind][value=${value}]`)).checked = true;
    this.changed();
  }

  restore() {
    let draft = {};
    try { draft = JSON.parse(sessionStorage.getItem(kept)) ?? {}; } catch { /* a broken draft is none */ }
    this.words.value = draft.text ?? "";
    this.wanted = draft.to ?? "";
    this.files.restore(draft.blobs);
    if (draft.re) this.answer(draft.re, false);
    this.msgId = draft.msgId ?? "";
    this.kind = draft.kind === "delegate" ? "delegate" : "prompt";
  }

  // changed makes the message another one, so it gets another id.
  changed() {
    if (this.to.value) this.wanted = this.to.value;
    this.msgId = "";
    this.save();
    this.buttons();
  }

  save() {
    const draft = { text: this.words.value, to: this.wanted, kind: this.kind, msgId: this.msgId, re: this.re, blobs: this.files.refs };
    try { sessionStorage.setItem(kept, JSON.stringify(draft)); } catch { /* it lives as long as the page then */ }
  }

  buttons() {
    const delegate = this.kind === "delegate";
    text(this.button, t(this.sending ? "sending" : delegate ? "delegate_task" : "send_prompt"));
    attr(this.words, "placeholder", t(delegate ? "write_task" : "write_prompt"));
    this.button.disabled = Boolean(this.sending || this.off || this.files.waits || !this.to.value || !this.words.value.trim());
  }

  draw(store, now) {
    this.store = store;
    this.now = now;
    this.off = store.health(now) === "silent";
    attr(this, "data-off", this.off);
    const ids = store.agents.filter((a) => !a.room).map((a) => a.id).sort((a, b) => a.localeCompare(b));
    const rooms = (store.rooms ?? []).map((r) => "#" + r.id);
    const key = ids.concat(rooms).join("\n");
    if (this.to.dataset.of !== key) {
      this.to.dataset.of = key;
      const first = el("option", { value: "" }, t(ids.length ? "choose_agent" : "nobody_to"));
      this.to.replaceChildren(first, ...ids.map((id) => el("option", { value: id }, id)), ...(store.rooms ?? []).map((r) => el("option", { value: "#" + r.id }, t("room_option", { topic: r.topic || r.id }))));
      const s = store.status;
      const usual = s && !noMain(s, now + store.skew) ? s.main.agent : s?.agent; // who cannot be reached is no default
      this.to.value = ids.concat(rooms).includes(this.wanted) ? this.wanted : ids.includes(usual) ? usual : ids[0] ?? "";
      this.to.disabled = ids.length === 0;
    }
    this.buttons();
  }

  choose(agent) {
    this.wanted = agent;
    this.to.value = agent;
    this.changed();
  }

  // answer makes the next message an answer to one; null: to none.
  answer(re, changes = true) {
    this.re = re;
    attr(this.reLine, "hidden", !re);
    if (re) text(this.reLine.firstElementChild, t("answers", { id: re.short }));
    if (changes) this.changed();
  }

  focusFor(kind) {
    this.kind = kind;
    this.words.focus();
  }

  async send() {
    const said = this.words.value.trim();
    const to = this.to.value;
    if (!said || !to || this.sending || this.off || this.files.waits) return;
    this.sending = true;
    this.msgId ||= newMsgID(Date.now());
    this.save();
    this.buttons();
    const delegate = this.kind === "delegate";
    const value = delegate ? { task: said } : { promptId: "p-" + this.msgId, text: said };
    try {
      const room = to.startsWith("#") ? to.slice(1) : "";
      const blobs = this.files.refs;
      const result = await post("send", { ...(room ? { room } : { to }), intent: delegate ? "Delegate" : "UserPrompt", value, msgId: this.msgId, ...(this.re ? { re: this.re.id } : {}), ...(blobs.length ? { blobs } : {}), fromBoard: true });
      if (this.words.value.trim() === said) this.words.value = ""; // what was written meanwhile is the next message
      this.files.clear();
      this.sending = false;
      this.answer(null);
      this.tell("ok", room ? t("sent_room", { id: result.short, room: this.roomName(room) }) : this.sentWords(result));
    } catch (err) {
      attr(this.said, "data-tone", "bad");
      showWhy(this.said, whyNot(err, "not_sent", t("not_sent_silent")));
    } finally {
      this.sending = false;
      this.buttons();
    }
  }

  sentWords(result) {
    const agent = this.store.agents.find((a) => a.id === result.to);
    const state = t("state_" + (result.toState || (agent ? stateOf(agent, this.store) : "unknown")));
    const values = { id: result.short, agent: result.to, state, how: result.toWakes ? t("wakes_by", { how: wayOf(result.toWakes) }) : "" };
    return t(result.toWakes ? "sent_wakes" : "sent", values);
  }

  roomName(id) {
    return this.store.rooms.find((r) => r.id === id)?.topic || id;
  }

  tell(tone, words) {
    attr(this.said, "data-tone", tone);
    this.said.replaceChildren(foreign(words));
  }
}
customElements.define("as-composer", Composer);
