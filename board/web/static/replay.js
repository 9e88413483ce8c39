// The past: a store of its own that holds one moment at a time, and the bar that moves through them. The node folds its
// journal up to the moment, so what arrived since is told too, and marked.
import { attr, el, text } from "./dom.js";
import { momentTime } from "./words.js";
import { ask } from "./feed.js";
import { travel, where } from "./route.js";
import { Store } from "./store.js";
import { showWhy, whyNot } from "./refusals.js";
import { t } from "./strings.js";

const speeds = [1, 10, 60, 600];
const shortest = 80, longest = 900; // ms between two moments that are played: nobody waits through a night

export class Past {
  // live is the store that goes on meanwhile.
  constructor(live) {
    this.live = live;
    this.store = new Store();
    this.at = 0; // 0: nobody looks back
    this.moment = null;
    this.ticks = [];
    this.state = "ready"; // asking, failed
    this.why = null; // of "failed"
    this.busy = false;
    this.playing = false;
    this.speed = 10;
    this.owed = 0; // steps
    this.changed = () => this.live.changed("status", "agents", "tasks", "messages", "asks");
  }

  // follow shows the moment that the address names. Of moments that are asked for while one is on its way the last counts.
  follow(at, filter, since) {
    const key = JSON.stringify([at, filter, since]);
    if (key === this.key) return;
    if (!this.at !== !at) this.moment = null;
    this.key = key;
    this.at = at;
    if (!at) {
      this.playing = false;
      this.ticks = [];
      this.state = "ready";
      return this.changed();
    }
    if (this.moment?.at === at) this.take(this.moment);
    else this.look();
  }

  async look() {
    if (this.busy) return;
    this.busy = true;
    this.state = "asking";
    this.changed();
    const at = this.at;
    try {
      const got = await ask("moment?at=" + at + (this.ticks.length ? "" : "&ticks=1"));
      if (got.ticks) this.ticks = got.ticks;
      this.state = "ready";
      if (this.at) this.take(got);
    } catch (err) {
      this.state = "failed";
      this.playing = false;
      this.why = whyNot(err, "past_refused", t("past_failed"));
    }
    this.busy = false;
    if (this.at && this.at !== at) return this.look();
    this.changed();
    if (this.owed && this.state === "ready") {
      const by = Math.sign(this.owed);
      this.owed -= by;
      this.step(by);
    } else {
      this.owed = 0;
      this.next();
    }
  }

  take(m) {
    const { filter, since } = where();
    this.moment = m;
    this.store.loaded = true;
    this.store.past = m.at;
    this.store.status = { ...this.live.status, main: m.main, now: m.at };
    this.store.peers = m.peers;
    this.store.agents = m.agents;
    this.store.tasks = new Map(m.tasks.map((task) => [task.id, task]));
    this.store.asks = m.asks;
    this.store.window.changed = () => this.live.changed("messages");
    this.store.window.past(m, filter, since);
    this.changed();
  }

  // to goes to a moment: from the live board it is a step that Back undoes, within the past it is not.
  to(at) {
    if (at) travel(Math.trunc(at), this.at > 0);
  }

  // step goes a message back or on; steps while a moment is on its way are taken once it is there.
  step(by) {
    this.playing = false;
    if (this.moment?.at !== this.at) {
      this.owed += by;
      return;
    }
    this.to(by > 0 ? this.moment?.next : this.moment?.prev && this.moment.prev < this.at ? this.moment.prev : 0);
    this.changed();
  }

  play(on = !this.playing) {
    this.playing = on;
    this.changed();
    this.next();
  }

  // next waits as long as the two messages lay apart, and goes on.
  next() {
    clearTimeout(this.timer);
    if (!this.playing || this.state !== "ready" || !this.moment) return;
    if (!this.moment.next || document.hidden) {
      this.playing = false;
      return this.changed();
    }
    const pause = Math.min(longest, Math.max(shortest, (this.moment.next - this.moment.at) / this.speed));
    this.timer = setTimeout(() => { if (this.playing) this.to(this.moment.next); }, pause);
  }
}

class Replay extends HTMLElement {
  connectedCallback() {
    const button = (key, hint, act, cls = "") => el("button", { type: "button", class: cls, title: hint, "aria-label": t(key), on: { click: act } });
    this.time = el("strong", { class: "moment" });
    this.slider = /** @type {HTMLInputElement} */ (el("input", { type: "range", min: 0, step: 1, "aria-label": t("past_time"), on: { input: () => this.slid() } }));
    this.back = button("past_back", "[", () => this.past.step(-1));
    this.on = button("past_on", "]", () => this.past.step(1));
    this.playing = button("past_play", "", () => this.past.play());
    text(this.back, "‹");
    text(this.on, "›");
    this.speed = /** @type {HTMLSelectElement} */ (el("select", { "aria-label": t("past_speed"), on: { change: () => { this.past.speed = Number(this.speed.value); this.past.next(); } } },
      ...speeds.map((n) => el("option", { value: n, selected: n === 10 }, n + "×"))));
    this.exact = /** @type {HTMLInputElement} */ (el("input", { type: "datetime-local", step: 1, "aria-label": t("past_exact"), on: { change: () => { if (this.exact.value) this.past.to(new Date(this.exact.value).getTime()); } } }));
    this.said = el("span", { class: "said", role: "status" });
    this.again = el("button", { type: "button", hidden: true, on: { click: () => this.past.look() } }, t("look_again"));
    this.link = el("button", { type: "button", on: { click: () => navigator.clipboard.writeText(location.href).then(() => text(this.said, t("copied"))) } }, t("copy_link"));
    this.live = el("button", { type: "button", class: "primary", title: "L", on: { click: () => travel(0) } }, t("past_live"));
    attr(this, "role", "region");
    attr(this, "aria-label", t("replay"));
    this.append(el("div", { class: "when-line" }, this.time, el("span", { class: "quiet" }, t("past_read_only")), this.said, this.again),
      el("div", { class: "slide-line" }, this.back, this.playing, this.on, this.slider, this.speed),
      el("div", { class: "end-line" }, this.exact, this.link, this.live));
  }

  slid() {
    this.past.playing = false;
    const at = this.past.ticks[Number(this.slider.value)];
    if (at) this.past.to(at);
  }

  draw(past) {
    this.past = past;
    attr(this, "hidden", !past.at);
    if (!past.at) return;
    const ticks = past.ticks;
    const time = momentTime(past.at);
    text(this.time, momentTime(past.moment?.at ?? past.at)); // what is shown, not what was asked for
    attr(this.slider, "max", Math.max(1, ticks.length - 1));
    if (document.activeElement !== this.slider || ticks[Number(this.slider.value)] !== past.at) this.slider.value = String(placeOf(ticks, past.at));
    attr(this.slider, "aria-valuetext", time);
    const local = new Date(past.at - new Date(past.at).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
    if (document.activeElement !== this.exact && this.exact.value !== local) this.exact.value = local;
    this.back.disabled = !past.moment?.prev || past.moment.prev >= past.at;
    this.on.disabled = this.playing.disabled = !past.moment?.next;
    text(this.playing, past.playing ? "❚❚" : "▶");
    attr(this.playing, "aria-label", t(past.playing ? "past_pause" : "past_play"));
    attr(this.playing, "title", t(past.playing ? "past_pause" : "past_play"));
    attr(this.link, "hidden", !navigator.clipboard);
    attr(this.again, "hidden", past.state !== "failed");
    attr(this.said, "data-tone", past.state === "failed" ? "bad" : null);
    const why = past.state === "failed" ? past.why : { words: this.words(past), own: "" };
    const key = why.words + why.own;
    if (this.words_ !== key) showWhy(this.said, why);
    this.words_ = key;
  }

  // words say what is not as usual: the node looks, or there is nothing.
  words(past) {
    if (!past.moment) return past.state === "asking" ? t("looking") : "";
    const m = past.moment;
    if (!m.messages.length && !m.agents.length) return t("past_before");
    const late = m.messages.filter((x) => x.late).length;
    if (late) return t("past_late", { n: late });
    return m.next || past.playing ? "" : t("past_last");
  }
}
customElements.define("as-replay", Replay);

// placeOf is the last tick at or before a moment.
export function placeOf(ticks, at) {
  let low = 0, high = ticks.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (ticks[mid] <= at) low = mid + 1;
    else high = mid;
  }
  return Math.max(0, low - 1);
}
