// Everything that can be done or gone to, by typing some of its letters.
import { attr, el, foreign } from "./dom.js";
import { show, go, select } from "./route.js";
import { glyph, taskGlyph } from "./marks.js";
import { stateOf } from "./agents.js";
import { roleOf } from "./words.js";
import { t } from "./strings.js";

const shown = 40;

class Palette extends HTMLElement {
  connectedCallback() {
    this.input = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
      "aria-label": t("palette"), placeholder: t("palette_hint"), on: { input: () => this.fill(), keydown: (e) => this.key(e) } });
    this.list = el("ul", { id: "palette-list", role: "listbox", "aria-label": t("palette") });
    this.dialog = el("dialog", { class: "palette", "aria-label": t("palette"), on: { click: (e) => { if (e.target === this.dialog) this.dialog.close(); } } }, this.input, this.list);
    this.append(this.dialog);
  }

  // show opens it. of narrows it to what can be done with one row: an element's act names.
  show(store, act, now) {
    if (this.dialog.open) {
      this.dialog.close();
      return;
    }
    this.store = store;
    this.act = act;
    this.now = now;
    this.input.value = "";
    this.fill();
    this.dialog.showModal();
  }

  entries() {
    const does = (name, key, word) => ({ words: t(word), hint: key, run: () => this.act(name) });
    const out = [
      does("search", "/", "do_search"), does("delegate", "d", "do_delegate"), does("prompt", "c", "do_prompt"), does("next", "n", "do_next"),
      { words: t("do_board"), hint: "g b", run: () => show("board") }, { words: t("do_agenda"), hint: "g a", run: () => show("agenda") }, { words: t("do_mesh"), hint: "g m", run: () => show("mesh") },
      { words: t("do_settings"), hint: "g s", run: () => show("settings") }, does("time", "t", "do_time"), does("live", "L", "do_live"),
      does("reply", "r", "do_reply"), does("why", "w", "do_why"), does("copy", "y", "do_copy"), does("keys", "?", "do_keys"),
    ];
    if (this.store.past) out.splice(0, out.length, does("search", "/", "do_search"), does("earlier", "[", "do_earlier"), does("later", "]", "do_later"), does("time", "t", "do_time"), does("live", "L", "do_live"), does("why", "w", "do_why"), does("copy", "y", "do_copy"), does("keys", "?", "do_keys"));
    for (const a of this.store.agents) {
      out.push({ mark: stateOf(a, this.store), words: a.id, hint: t("agent"), more: a.node, run: () => go("a", a.id) });
    }
    for (const task of this.store.tasks.values()) out.push({ mark: taskGlyph[task.state] ?? "unknown", words: task.title, hint: task.short, more: task.to, run: () => go("t", task.id) });
    for (const p of this.store.peers) out.push({ words: p.name || p.peer, hint: t("node"), more: roleOf(p.role), run: () => go("n", p.peer) });
    return out;
  }

  fill() {
    const typed = this.input.value.trim().toLowerCase();
    const words = typed.split(/\s+/).filter(Boolean);
    const score = (e) => {
      const text = (e.words + " " + e.hint + " " + (e.more ?? "")).toLowerCase();
      if (!words.every((w) => text.includes(w))) return -1;
      return text.startsWith(typed) ? 2 : words.every((w) => (" " + text).includes(" " + w)) ? 1 : 0;
    };
    let found = this.entries().map((e, i) => ({ e, i, s: typed ? score(e) : 0 })).filter((x) => x.s >= 0).sort((a, b) => b.s - a.s || a.i - b.i).slice(0, shown).map((x) => x.e);
    if (typed) found = found.concat({ words: t("do_find", { words: this.input.value.trim() }), hint: "/", run: () => select({ q: this.input.value.trim() }) });
    this.found = found;
    this.at = 0;
    this.list.replaceChildren(...found.map((e, i) => el("li", { id: "palette-" + i, role: "option", on: { click: () => this.run(i), pointermove: () => this.choose(i) } },
      e.mark ? glyph(e.mark) : el("span", { class: "no-mark" }), foreign(e.words, { class: "title" }), e.more ? foreign(e.more, { class: "quiet" }) : "", el("span", { class: "hint" }, e.hint ?? ""))));
    this.choose(0);
  }

  choose(i) {
    this.at = i;
    [...this.list.children].forEach((li, n) => attr(li, "aria-selected", String(n === i)));
    attr(this.input, "aria-activedescendant", this.found.length ? "palette-" + i : null);
  }

  key(e) {
    if (e.isComposing) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by && this.found.length) {
      e.preventDefault();
      this.choose((this.at + by + this.found.length) % this.found.length);
      this.list.children[this.at].scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter") {
      e.preventDefault();
      this.run(this.at);
    }
  }

  run(i) {
    const entry = this.found[i];
    this.dialog.close(); // the focus goes back to where it was; what runs may take it
    entry?.run();
  }
}
customElements.define("as-palette", Palette);
