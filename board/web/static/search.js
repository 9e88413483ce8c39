// What Messages shows: words to look for, filters, a moment. All of it stands in the address.
import { attr, el, foreign, text } from "./dom.js";
import { exactTime, roleOf, roomOf } from "./words.js";
import { clear, select, where } from "./route.js";
import { t } from "./strings.js";

const roles = ["main", "local", "upstream", "collab", "peer", "board"];
const intents = ["Delegate", "WorkerReport", "UserPrompt", "Request", "Response", "Report", "AgentText", "ToolCall", "SelectionPrompt", "Cancel"];
const pause = 160; // ms after the last key

class Search extends HTMLElement {
  connectedCallback() {
    this.words = el("input", { type: "search", id: "search-words", placeholder: t("search_messages"), "aria-label": t("search_messages"), autocomplete: "off", spellcheck: "false", enterkeyhint: "search", on: {
      input: () => this.later(),
      keydown: (e) => this.key(e),
    } });
    this.button = el("button", { type: "button", class: "filter-button", "aria-expanded": "false", "aria-controls": "filters", on: { click: () => this.toggle() } }, t("filter"));
    this.chips = el("div", { class: "chips" });
    this.form = el("div", { id: "filters", class: "filters", hidden: true }, ...this.fields());
    this.append(el("div", { class: "line", role: "search" }, this.words, this.button), this.form, this.chips);
    this.words.value = where().filter.q ?? "";
  }

  fields() {
    const choice = (name, values, label) => el("label", {}, el("span", {}, t("filter_" + name)), el("select", { "data-name": name, on: { change: (e) => select({ [name]: e.target.value }) } },
      el("option", { value: "" }, t("any")), ...values.map((v) => el("option", { value: v }, label?.(v) ?? v))));
    this.agents = choice("agent", []);
    const at = el("input", { type: "datetime-local", step: 1, on: { change: (e) => select({}, e.target.value ? new Date(e.target.value).getTime() : 0) } });
    this.moment = at;
    return [this.agents, choice("role", roles, roleOf), choice("intent", intents), el("label", {}, el("span", {}, t("filter_at")), at)];
  }

  toggle(open = this.form.hidden) {
    this.form.hidden = !open;
    attr(this.button, "aria-expanded", String(open));
    if (open) this.form.querySelector("select").focus();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.go(), pause);
  }

  go() {
    clearTimeout(this.timer);
    const q = this.words.value.trim();
    if (q !== (where().filter.q ?? "")) select({ q });
  }

  key(e) {
    if (e.isComposing) return;
    if (e.key === "Enter") {
      this.go();
      /** @type {any} */ (this.closest("as-stream")).step(-1); // the newest hit
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      /** @type {any} */ (this.closest("as-stream")).step(-1);
    } else if (e.key === "Escape") {
      e.stopPropagation();
      if (this.words.value) {
        this.words.value = "";
        this.go();
      } else this.words.blur();
    }
  }

  draw(store, now) {
    const ids = store.agents.map((a) => a.id).sort((a, b) => a.localeCompare(b));
    const box = this.agents.querySelector("select");
    const key = ids.join("\n");
    if (box.of !== key) {
      box.of = key;
      box.replaceChildren(el("option", { value: "" }, t("any")), ...ids.slice(0, 500).map((id) => el("option", { value: id }, id)));
    }
    const { filter, since } = where();
    if (document.activeElement !== this.words && this.words.value.trim() !== (filter.q ?? "")) this.words.value = filter.q ?? "";
    for (const f of this.form.querySelectorAll("select")) if (document.activeElement !== f) f.value = filter[f.dataset.name] ?? "";
    const shown = Object.entries(filter).filter(([name]) => name !== "q").map(([name, value]) => [name, value, t("filter_" + name)]);
    if (since) shown.push(["since", exactTime(since), t("filter_at")]);
    const all = JSON.stringify(shown);
    if (this.chips.of === all) return;
    this.chips.of = all;
    this.chips.replaceChildren(...shown.map(([name, value, label]) => el("button", { type: "button", class: "chip", title: t("remove_filter", { what: label }), on: {
      click: () => (name === "since" ? select({}, 0) : select({ [name]: "" })),
    } }, el("span", { class: "quiet" }, label), " ", foreign(name === "role" ? roleOf(value) : name === "room" ? roomOf(value) : value), el("span", { "aria-hidden": "true" }, " ×"))),
    shown.length > 1 ? el("button", { type: "button", class: "fold", on: { click: () => clear() } }, t("remove_all")) : "");
    text(this.button, t("filter") + (shown.length ? " " + shown.length : ""));
  }

  focusWords() {
    this.words.focus();
    this.words.select();
  }
}
customElements.define("as-search", Search);
