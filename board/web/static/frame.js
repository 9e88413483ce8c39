// What stands round the regions: the top, notices, the foot, tabs, and the list of keys.
import { attr, el, foreign, plain, text } from "./dom.js";
import { age, bytes, count, noMain, timeOfDay, warningOf } from "./words.js";
import { show, where } from "./route.js";
import { keep, kept } from "./kept.js";
import { t } from "./strings.js";

const waits = () => el("span", { class: "waits" });

class Top extends HTMLElement {
  connectedCallback() {
    this.node = foreign("", { class: "node-name" });
    this.main = el("span", { class: "main" });
    this.fresh = el("span", { class: "fresh-word" });
    const act = (name) => this.dispatchEvent(new CustomEvent("act", { bubbles: true, detail: name }));
    const button = (cls, key, name, label) => el("button", { type: "button", class: cls, title: label, on: { click: () => act(name) } }, t(key));
    this.views = el("nav", { class: "views", "aria-label": t("views") }, ...["board", "agenda", "mesh", "settings"].map((name) =>
      el("button", { type: "button", "data-view": name, title: "g " + name[0], on: { click: () => show(name) } }, t("view_" + name), name === "board" ? waits() : "")));
    this.skip = el("a", { class: "skip", href: "#work" }, t("skip"));
    this.append(
      this.skip,
      el("img", { src: "/static/icon.svg", alt: "aster", width: 20, height: 20 }),
      el("h1", {}, this.node), this.main, this.views, el("span", { class: "spacer" }),
      el("button", { type: "button", class: "open-palette", title: "Ctrl K", on: { click: () => act("palette") } }, el("span", {}, t("search_or_command")), el("kbd", {}, /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ K" : "Ctrl K")),
      el("span", { class: "spacer" }), this.fresh,
      button("open-agents", "agents", "agents", "a"), button("open-messages", "messages", "messages", "s"), button("open-keys", "keys_button", "keys", "?"),
      (this.delegate = button("open-delegate", "delegate", "delegate", "d")));
    this.icon = document.getElementById("icon");
  }

  // past is the store of a past moment, if one is shown: of it is who was main, and nothing else here.
  draw(store, now, past = null) {
    const s = store.status;
    if (!s) return;
    text(this.node, s.name);
    this.drawCount(store);
    const main = past ? past.status.main : s.main;
    const fenced = !past && s.fenced; // then what it knows of main is old
    const key = fenced || (!past && noMain(s, now + store.skew)) ? "" : main.agent || main.node || "";
    if (this.main.dataset.of !== key + (fenced ? "?" : "")) {
      this.main.dataset.of = key + (fenced ? "?" : "");
      attr(this.main, "data-tone", key ? null : "wait");
      this.main.replaceChildren(...(key ? [el("span", { class: "role", "data-main": true }, t("main_is")), " ", foreign(key)] : [t(fenced ? "main_unknown" : "main_none")]));
    }
    const health = store.health(now);
    attr(this.fresh, "data-health", health);
    const back = health === "live" && Boolean(where().at); // what is shown is not live, though the node is
    attr(this.fresh, "data-past", back);
    text(this.fresh, health === "silent" ? t("silent", { time: age(store.silence(now)) }) : t(back ? "replay" : health));
    const view = where().view;
    attr(this.skip, "href", view === "board" ? "#work" : "#view");
    text(this.skip, t(view === "board" ? "skip" : "skip_view"));
    for (const b of /** @type {any} */ (this.views.children)) {
      attr(b, "aria-current", b.dataset.view === view ? "page" : null);
      b.disabled = Boolean(where().at) && b.dataset.view !== "board";
      attr(b, "title", b.disabled ? t("past_views") : "g " + b.dataset.view[0]);
    }
    attr(this.delegate, "hidden", Boolean(where().at));
  }

  // drawCount puts into title, icon and the ways to the board what waits for this person.
  drawCount(store) {
    const n = store.waiting;
    const title = (n ? "(" + count(n) + ") " : "") + "aster " + plain(store.status?.name);
    if (document.title !== title) document.title = title;
    attr(this.icon, "href", n ? "/static/icon-asks.svg" : "/static/icon.svg");
    if (this.badge !== n) {
      this.badge = n;
      for (const at of document.querySelectorAll(".waits")) {
        text(at, n ? count(n) : "");
        attr(at, "title", n ? t("needs_you") + " " + count(n) : null);
      }
      navigator.setAppBadge?.(n)?.catch?.(() => {}); // where a browser shows none there is the title
    }
  }
}
customElements.define("as-top", Top);

class Banner extends HTMLElement {
  connectedCallback() {
    attr(this, "role", "status");
  }

  draw(store, now) {
    const notices = this.notices(store, now);
    const key = JSON.stringify([notices, this.all]);
    if (this.dataset.of === key) return;
    this.dataset.of = key;
    this.replaceChildren(...notices.map(([tone, words, button, node, more]) =>
      el("p", { "data-tone": tone, "aria-live": tone === "info" ? "off" : null }, foreign(words), node ? el("details", {}, el("summary", {}, t("as_said")), foreign(node, { lang: "en" })) : "", button ? el("button", { type: "button", on: { click: () => this.press(button, store) }, "aria-expanded": button === "warnings" ? String(Boolean(this.all)) : null }, button === "warnings" ? t(this.all ? "fewer" : "more", { n: count(more) }) : t(button)) : "")));
  }

  press(button, store) {
    if (button === "reload") location.reload();
    else if (button === "warnings") {
      this.all = !this.all;
      store.changed("status");
    } else {
      store.sinceLooked = "";
      store.changed("status");
    }
  }

  notices(store, now) {
    const s = store.status;
    if (!s) return [];
    const out = [];
    if (store.health(now) === "silent") out.push(["bad", t("node_silent", { time: timeOfDay(store.lastBeat) })]);
    if (s.diskFull) out.push(["bad", t("disk_full", { left: bytes(Math.max(0, s.diskMax - s.disk)) })]);
    const office = noMain(s, now + store.skew);
    if (office) out.push(["wait", office]);
    if (store.asOf) out.push(["info", t("as_known", { time: timeOfDay(store.asOf) })]);
    if (s.behind > 1000) out.push(["info", t("catching_up", { here: count(s.records), of: count(s.records + s.behind) })]);
    if (store.sinceLooked) out.push(["info", store.sinceLooked, "looked"]);
    if (store.version && s.version !== store.version) out.push(["info", t("updated"), "reload"]);
    const warnings = (s.warnings ?? []).map((w, i) => warningOf(s.warningKinds?.[i], w));
    warnings.slice(0, this.all ? 20 : 1).forEach(([words, said], i) => out.push(["wait", words, i === 0 && warnings.length > 1 ? "warnings" : "", said, warnings.length - 1]));
    return out;
  }
}
customElements.define("as-banner", Banner);

class Foot extends HTMLElement {
  connectedCallback() {
    this.parts = ["name", "nodes", "records", "clocks", "disk", "version"].map((name) => foreign("", { class: "part", "data-part": name }));
    this.append(...this.parts);
    attr(this.parentElement, "aria-label", t("mesh"));
  }

  draw(store) {
    const s = store.status;
    if (!s) return;
    const others = Math.max(0, s.nodes - 1);
    const words = [
      s.name,
      others ? t("nodes_linked", { n: count(s.linked), of: count(others) }) : t("nodes_alone"),
      others && s.linked === 0 ? t("records_alone", { n: count(s.records) }) : t("records", { n: count(s.records), behind: count(s.behind) }),
      clocks(store),
      s.diskMax ? t("disk", { used: bytes(s.disk), max: bytes(s.diskMax) }) : t("disk_open", { used: bytes(s.disk) }),
      "aster " + s.version,
    ];
    this.parts.forEach((part, i) => text(part, words[i]));
    attr(this.parts[1], "data-tone", others && s.linked < others ? "wait" : null);
    attr(this.parts[2], "data-tone", s.behind > 0 ? "wait" : null);
    attr(this.parts[3], "hidden", !words[3]);
    attr(this.parts[3], "data-tone", store.peers.some(clockOff) ? "wait" : null);
    attr(this.parts[4], "data-tone", s.diskFull ? "bad" : null);
  }
}

const doubtful = 60e3; // as the node's: then times carry a "~"
const clockOff = (p) => p.linked && Math.abs(p.skewMillis ?? 0) > doubtful;

// clocks says whether those of linked nodes agree with this one's; of others nothing is known.
function clocks(store) {
  const off = store.peers.filter(clockOff);
  if (off.length > 1) return t("clocks_off", { n: count(off.length) });
  if (off.length) return t("clock_off", { node: off[0].name, time: age(Math.abs(off[0].skewMillis)) });
  return store.peers.some((p) => p.linked && !p.self) ? t("clocks_agree") : "";
}
customElements.define("as-foot", Foot);

class Tabs extends HTMLElement {
  connectedCallback() {
    attr(this.parentElement, "aria-label", "aster");
    this.append(...["work", "messages", "agents", "mesh"].map((name) =>
      el("button", { type: "button", "data-tab": name, on: { click: () => this.choose(name) } }, t(name), name === "work" ? waits() : "")));
    this.mark(where().view === "board" ? "work" : "mesh");
  }

  choose(name) {
    if (name === "mesh" && where().view !== "mesh") show("mesh");
    else if (name !== "mesh" && where().view !== "board") show("board");
    this.mark(name);
  }

  // follow brings the tabs to the view that the address names.
  follow(view) {
    const mesh = document.body.dataset.tab === "mesh";
    if (view !== "board" && !mesh) this.mark("mesh");
    else if (view === "board" && mesh) this.mark("work");
    else this.light();
  }

  // light marks the tab of what is shown; agenda and settings have none.
  light() {
    const { view } = where();
    const lit = view === "board" || view === "mesh" ? document.body.dataset.tab : "";
    for (const b of /** @type {any} */ (this.children)) attr(b, "aria-current", b.dataset.tab === lit ? "page" : null);
  }

  mark(name) {
    document.body.dataset.tab = name;
    this.light();
    this.dispatchEvent(new CustomEvent("redraw", { bubbles: true }));
  }
}
customElements.define("as-tabs", Tabs);

class Help extends HTMLElement {
  connectedCallback() {
    const rows = [["Ctrl K", "key_palette"], ["/", "key_search"], ["j k", "key_rows"], ["Enter", "key_open"], ["Esc", "key_esc"], ["F6", "key_region"],
      ["n", "key_next"], ["1 … 9", "key_choose"], ["d", "key_d"], ["c", "key_c"], ["r", "key_r"], ["w", "key_w"], ["y", "key_copy"], ["x", "key_cancel"],
      ["t", "key_time"], ["[ ]", "key_step"], ["L", "key_live"], ["g b a m s", "key_go"], ["Alt ↑ ↓", "key_move"], ["a", "key_a"], ["s", "key_s"], [".", "key_actions"], ["?", "key_help"]];
    const dl = el("dl", {}, ...rows.flatMap(([keys, what]) => [el("dt", {}, ...keys.split(" ").map((k) => (k === "…" ? " … " : el("kbd", {}, k)))), el("dd", {}, t(what))]));
    this.off = el("input", { type: "checkbox", on: { change: () => keep("keys", this.off.checked ? null : "off") } });
    this.dialog = el("dialog", { "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, t("help")), dl, el("label", { class: "switch" }, this.off, " ", t("keys_on")),
      el("button", { type: "button", on: { click: () => this.dialog.close() } }, t("help_close")));
    this.append(this.dialog);
  }

  show() {
    this.off.checked = kept("keys") !== "off";
    if (!this.dialog.open) this.dialog.showModal();
  }
}
customElements.define("as-help", Help);
