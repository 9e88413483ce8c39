// Invites, keys and rooms, each with who and when; and this browser's switches. Every action says what it did.
import { attr, el, foreign, text } from "./dom.js";
import { age, count, roleOf, timeNode } from "./words.js";
import { ask, post } from "./feed.js";
import { keep, kept } from "./kept.js";
import { show } from "./route.js";
import * as notify from "./notify.js";
import { pushSwitch, quiet } from "./push.js";
import { newMsgID } from "./ids.js";
import { showWhy, whyNot } from "./refusals.js";
import { toast } from "./toast.js";
import "./qr.js";
import { t } from "./strings.js";

const invited = ["local", "upstream", "collab", "peer"];
const keyKinds = ["collab", "peer", "upstream", "local"];
const hour = 3600e3, day = 24 * hour;
const pressed = (label, act, props = {}) => el("button", { type: "button", ...props, on: { click: act } }, label);
const labelled = (label, field) => el("label", {}, el("span", {}, label), field);
const choice = (values, label) => el("select", {}, ...values.map((v) => el("option", { value: v }, label ? label(v) : v)));

class Settings extends HTMLElement {
  connectedCallback() {
    this.invites = this.section("invites", this.inviteForm(), t("about_invites"));
    this.keys = this.section("keys_of", this.keyForm(), t("about_keys"));
    this.rooms = this.section("rooms", this.roomForm(), t("about_rooms"));
    this.switches = el("section", { class: "setting", "aria-label": t("switches") }, el("h3", {}, t("switches")), ...this.switchNodes());
    this.append(el("div", { class: "head" }, el("h2", {}, t("settings")), el("span", { class: "spacer" }), el("button", { type: "button", class: "narrow", on: { click: () => show("mesh") } }, t("mesh"))), this.invites.node, this.keys.node, this.rooms.node, this.switches);
  }

  section(name, form, about) {
    const said = el("p", { class: "said", role: "status" });
    const shown = el("div", { class: "shown" });
    const rows = el("ol", { class: "setting-rows" });
    return { said, shown, rows, node: el("section", { class: "setting", "aria-label": t(name) }, el("h3", {}, t(name)), el("p", { class: "quiet" }, about), form, said, shown, rows) };
  }

  draw(store, now) {
    this.store = store;
    this.now = now;
  }

  async load() {
    this.push.draw();
    const one = async (part, path, fill) => {
      try {
        part.rows.replaceChildren(...fill(await ask(path)));
      } catch (err) {
        this.tell(part, "bad", err);
      }
    };
    await Promise.all([
      one(this.invites, "invites", (got) => this.listOf(got.invites, t("no_invites"), (x) => this.inviteRow(x))),
      one(this.keys, "keys?all=1", (got) => this.listOf(got.keys.slice().reverse(), t("no_keys"), (x) => this.keyRow(x))),
      this.loadRooms(),
    ]);
  }

  async loadRooms() {
    try {
      const got = await ask("rooms");
      this.store?.tookRooms(got.rooms);
      this.rooms.rows.replaceChildren(...this.listOf(got.rooms, t("no_rooms"), (x) => this.roomRow(x)));
    } catch (err) {
      this.tell(this.rooms, "bad", err);
    }
  }

  listOf(all, none, row) {
    return all.length ? all.slice(0, 100).map(row) : [el("li", { class: "quiet" }, none)];
  }

  tell(part, tone, words) {
    attr(part.said, "data-tone", tone);
    showWhy(part.said, words instanceof Error ? whyNot(words, "not_done", t("not_done", { reason: t("no_answer"), hint: "" })) : { words, own: "" });
  }

  // does runs an action of a part; its words say what it did.
  async does(part, act) {
    try {
      const words = await act();
      this.tell(part, "ok", words);
      toast(words);
      await this.load();
    } catch (err) {
      this.tell(part, "bad", err);
    }
  }

  inviteForm() {
    const role = choice(invited, roleOf), life = choice([hour, day, 7 * day], (ms) => t("for_" + (ms === hour ? "hour" : ms === day ? "day" : "week")));
    const lan = el("input", { type: "checkbox" });
    return el("form", { class: "line", on: { submit: (e) => {
      e.preventDefault();
      this.does(this.invites, async () => {
        const got = await post("invites", { role: role.value, ttlMillis: Number(life.value), lan: lan.checked });
        this.showToken(got);
        return t("invite_made", { role: roleOf(role.value) });
      });
    } } }, labelled(t("f_role"), role), labelled(t("lives"), life), el("label", { class: "switch" }, lan, " ", t("open_lan")), el("button", { type: "submit", class: "primary" }, t("make_invite")));
  }

  showToken(got) {
    this.invites.shown.replaceChildren(...secret(t("invite_once"), got.command, got.loopback ? t("invite_loopback") : "", got.squares));
  }

  inviteRow(x) {
    const now = Date.now();
    const open = !x.usedBy && x.expires > now;
    const state = x.usedBy ? t("invite_used", { node: x.usedName || x.usedBy.slice(-6) }) : open ? t("invite_open", { time: age(x.expires - now) }) : t("invite_over");
    return el("li", { "data-open": open ? "yes" : "no" }, el("span", { class: "name" }, roleOf(x.role)), foreign(state), x.usedAt ? timeNode(x.usedAt, now) : "", el("span", { class: "quiet" }, t("made_at"), " ", timeNode(x.made, now)), el("span", { class: "spacer" }),
      open ? pressed(t("withdraw"), () => this.does(this.invites, async () => {
        await post("invites/" + encodeURIComponent(x.id) + "/withdraw");
        this.invites.shown.replaceChildren();
        return t("withdrawn", { role: roleOf(x.role) });
      })) : "");
  }

  keyForm() {
    const kind = choice(keyKinds, roleOf), label = el("input", { type: "text", maxlength: 64, placeholder: t("label_hint") }), life = choice([14 * day, 90 * day, 0], (ms) => (ms ? t("n_days", { n: ms / day }) : t("no_end")));
    return el("form", { class: "line", on: { submit: (e) => {
      e.preventDefault();
      this.does(this.keys, async () => {
        const got = await post("keys", { kind: kind.value, label: label.value.trim(), ttlMillis: Number(life.value) });
        this.keys.shown.replaceChildren(...(got.secret ? secret(t("key_once"), got.page, "", got.squares) : secret(t("key_in_file"), got.file, "")));
        label.value = "";
        return t("key_made", { kind: roleOf(kind.value), label: got.key?.label ?? "" });
      });
    } } }, labelled(t("f_kind"), kind), labelled(t("f_label"), label), labelled(t("lives"), life), el("button", { type: "submit", class: "primary" }, t("issue_key")));
  }

  keyRow(k) {
    const now = Date.now();
    const live = (k.state === "ISSUED" || k.state === "ACTIVE") && !k.lapsed;
    const ends = k.lapsed ? t("key_lapsed") : !live ? t("key_over") : k.expires ? t("ends_in", { time: age(k.expires - now) }) : t("no_end");
    const who = k.lastAgent || k.bound;
    const row = el("li", { "data-open": live ? "yes" : "no" }, foreign(k.label || k.ref, { class: "name" }), el("span", {}, roleOf(k.kind)), foreign(ends), foreign(who ? t("used_by", { agent: who }) : t(live ? "used_by_nobody" : "never_used"), { class: "quiet" }),
      el("span", { class: "quiet" }, t("made_at"), " ", timeNode(k.issued, now)), el("span", { class: "id" }, k.ref), el("span", { class: "spacer" }));
    if (!live) return row;
    const at = "keys/" + encodeURIComponent(k.ref);
    row.append(pressed(t("key_renew"), () => this.does(this.keys, async () => { await post(at + "/renew"); return t("key_renewed", { label: k.label }); }), { disabled: !k.expires }),
      pressed(t("key_label"), () => this.relabel(row, k)), pressed(t("key_revoke"), () => this.revoke(row, k)));
    return row;
  }

  relabel(row, k) {
    const field = el("input", { type: "text", maxlength: 64, "aria-label": t("f_label") });
    field.value = k.label;
    const save = () => this.does(this.keys, async () => { await post("keys/" + encodeURIComponent(k.ref) + "/label", { label: field.value.trim() }); return t("key_labelled", { label: field.value.trim() }); });
    field.addEventListener("keydown", (e) => { if (e.key === "Enter" && !e.isComposing) save(); });
    row.replaceChildren(field, pressed(t("save"), save, { class: "primary" }), pressed(t("keep_it"), () => this.load()));
    field.focus();
  }

  revoke(row, k) {
    const end = (mode) => () => this.does(this.keys, async () => {
      const got = await post("keys/" + encodeURIComponent(k.ref) + "/revoke", { mode });
      return t("key_revoked", { label: k.label, n: count(got.sessions) });
    });
    row.replaceChildren(el("span", {}, foreign(t("key_sure", { label: k.label }))), pressed(t("revoke_now"), end("immediate"), { class: "danger" }), pressed(t("revoke_later"), end("sessionEnd")), pressed(t("keep_it"), () => this.load()));
    row.querySelector("button").focus();
  }

  roomForm() {
    const topic = el("input", { type: "text", maxlength: 200, placeholder: t("room_topic"), required: true });
    const who = el("input", { type: "text", placeholder: t("room_who"), list: "room-agents" });
    return el("form", { class: "line", on: { submit: (e) => {
      e.preventDefault();
      this.does(this.rooms, async () => {
        const participants = who.value.split(/[\s,]+/).filter(Boolean);
        await post("send", { intent: "RoomCreate", value: { topic: topic.value.trim(), participants }, msgId: newMsgID(Date.now()), fromBoard: true });
        const said = t("room_opened", { topic: topic.value.trim() });
        topic.value = who.value = "";
        return said;
      });
    } } }, labelled(t("f_topic"), topic), labelled(t("f_participants"), who), el("button", { type: "submit", class: "primary" }, t("open_room")));
  }

  roomRow(r) {
    const now = Date.now();
    const row = el("li", { "data-open": "yes" }, foreign(r.topic || r.id, { class: "name" }), foreign(r.participants.join(", ") || t("nobody_in")), foreign(r.by ? t("opened_by", { who: r.by }) : t("opened_by", { who: t("person", { node: r.nodeName }) }), { class: "quiet" }), el("span", { class: "quiet" }, timeNode(r.at, now)), el("span", { class: "spacer" }));
    const close = pressed(t("close_room"), () => {
      row.replaceChildren(el("span", {}, foreign(t("room_sure", { topic: r.topic || r.id }))), pressed(t("close_room"), () => this.does(this.rooms, async () => {
        await post("send", { intent: "RoomClose", value: { roomId: r.id }, msgId: newMsgID(Date.now()), fromBoard: true });
        return t("room_closed", { topic: r.topic || r.id });
      }), { class: "danger" }), pressed(t("keep_it"), () => this.loadRooms()));
      row.querySelector("button").focus();
    });
    row.append(close);
    return row;
  }

  switchNodes() {
    const keys = el("input", { type: "checkbox", on: { change: () => { keep("keys", keys.checked ? null : "off"); toast(t(keys.checked ? "keys_are_on" : "keys_are_off")); } } });
    keys.checked = kept("keys") !== "off";
    const tells = el("input", { type: "checkbox", disabled: !notify.can(), on: { change: async () => {
      if (!tells.checked) notify.off();
      else tells.checked = await notify.ask();
      toast(t(tells.checked ? "tells_on" : "tells_off"));
    } } });
    tells.checked = notify.wanted();
    const mute = pressed(t("snooze"), () => { notify.snooze(Date.now()); quiet(); toast(t("snoozed"), { label: t("undo"), act: () => { keep("snooze", null); quiet(); } }); }, { disabled: !notify.can() });
    this.push = pushSwitch(toast);
    return [el("p", { class: "quiet" }, t("of_this_browser")), el("label", { class: "switch" }, keys, " ", t("keys_on")),
      el("label", { class: "switch" }, tells, " ", t("tell_me")), el("p", { class: "quiet" }, t(notify.can() ? "about_tells" : "tells_only")), ...this.push.nodes, el("p", {}, mute)];
  }
}
customElements.define("as-settings", Settings);

// secret is shown once: with a button that copies it, where a browser can.
function secret(words, what, more, squares = null) {
  const said = el("span", { class: "said", role: "status" });
  return [el("p", {}, words, more ? " " + more : ""), el("p", { class: "command" }, el("code", {}, what),
    navigator.clipboard ? pressed(t("copy"), async () => { await navigator.clipboard.writeText(what); text(said, t("copied")); }) : "",
    squares ? pressed(t("show_qr"), () => /** @type {any} */ (document.querySelector("as-qr")).show(squares, words)) : "", said)];
}
