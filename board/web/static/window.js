// The stretch of messages that the page holds: the newest, or what a search, a filter or a moment selects. It grows to
// both sides as somebody scrolls; far away from them it forgets.
import { ask } from "./feed.js";

const page = 100;
const heldMax = 1000;
const looksMax = 30; // further looks for the first hit, of some thousand messages each

let turns = 0; // each selection of any window has its own

const lower = (s) => (s ?? "").toLowerCase();

// takes says whether a live message belongs to a filter, as the node would.
export function takes(filter, m) {
  const e = m.envelope;
  return (!filter.agent || lower(e.from) === lower(filter.agent) || lower(e.to) === lower(filter.agent)) &&
    (!filter.role || e.fromRole === filter.role) && (!filter.intent || e.intent === filter.intent) &&
    (!filter.thread || e.thread === filter.thread) && (!filter.room || e.room === filter.room) &&
    (!filter.task || e.id === filter.task || e.re === filter.task) &&
    (!filter.q || filter.q.split(/\s+/).every((word) => lower(m.text).includes(lower(word))));
}

export class MessageWindow {
  constructor(changed) {
    this.changed = changed;
    this.items = [];
    this.filter = {};
    this.since = 0;
    this.until = 0; // the past moment; 0: now
    this.before = 0; // where older ones go on; 0: this is the beginning
    this.after = 0; // where newer ones go on; 0: the live end
    this.missed = 0; // live ones beyond the end of what is held
    this.of = 0;
    this.state = "ready"; // ready, asking, failed
    this.turn = 0;
    this.stock = 0; // which moment's messages these are: what older or newer ones were asked for beside others is not for them
  }

  get plain() {
    return !this.since && Object.keys(this.filter).length === 0;
  }

  get live() {
    return this.after === 0;
  }

  // begin takes the newest from a snapshot, unless something else is looked at.
  begin(snapshot) {
    if (!this.plain) return;
    const last = this.items.at(-1)?.pos ?? 0;
    const first = snapshot.messages[0]?.pos ?? 0;
    if (this.items.length && this.live && first <= last) {
      for (const m of snapshot.messages) this.put(m);
      return;
    }
    if (this.items.length && !this.live) return;
    this.items = snapshot.messages.slice();
    this.before = snapshot.messages.length < page ? 0 : first;
    this.after = 0;
    this.missed = 0;
  }

  query(more) {
    const params = new URLSearchParams({ ...this.filter, limit: String(page), ...(this.until ? { until: String(this.until) } : {}), ...more });
    return ask("find?" + params);
  }

  // past takes what a moment holds. The same selection at another moment keeps what it has until it knows better.
  past(moment, filter, since) {
    const same = JSON.stringify([filter, since]) === JSON.stringify([this.filter, this.since]) && this.until > 0;
    this.until = moment.at;
    if (since || Object.keys(filter).length) return this.open(filter, since, same);
    if (!same) this.turn = ++turns;
    this.stock++; // the selection is the same, what is held is not
    this.filter = filter;
    this.since = 0;
    this.state = "ready";
    this.items = moment.messages;
    this.before = moment.messages.length < page ? 0 : moment.messages[0].pos;
    this.after = this.missed = 0;
  }

  // open selects anew. Of several calls the last one holds.
  async open(filter, since, quiet = false) {
    const turn = (this.turn = ++turns);
    this.filter = filter;
    this.since = since;
    if (!quiet) {
      this.state = "asking";
      this.items = [];
      this.before = this.after = this.missed = 0;
      this.changed();
    }
    try {
      let got = await this.query(since && !filter.q ? { at: String(since) } : {});
      for (let i = 0; i < looksMax && turn === this.turn && got.messages.length === 0 && got.before && !since; i++) got = await this.query({ before: String(got.before) });
      if (turn !== this.turn) return;
      this.items = got.messages;
      this.before = got.before ?? 0;
      this.after = got.after ?? 0;
      this.of = got.of;
      this.behind = got.behind ?? 0;
      this.state = "ready";
      if (since && !filter.q) await this.older(turn);
    } catch {
      if (turn === this.turn) this.state = "failed";
    }
    if (turn === this.turn) this.changed();
  }

  async older(turn = this.turn) {
    if (!this.before || this.growing) return;
    this.growing = true;
    const stock = this.stock;
    try {
      const got = await this.query({ before: String(this.before) });
      if (turn !== this.turn || stock !== this.stock) return;
      const first = this.items[0]?.pos ?? Infinity;
      this.items = got.messages.filter((m) => m.pos < first).concat(this.items);
      this.before = got.before ?? 0;
      const over = this.items.length - heldMax;
      if (over > 0) {
        this.items.length = heldMax;
        if (this.live) this.missed = 0;
        this.missed += over;
        this.after = this.items.at(-1).pos;
      }
    } catch { /* the frame says that the node does not answer */ } finally {
      this.growing = false;
    }
    this.changed();
  }

  async newer() {
    if (!this.after || this.growing || this.filter.q) return;
    this.growing = true;
    const turn = this.turn, stock = this.stock;
    try {
      const got = await this.query({ after: String(this.after) });
      if (turn !== this.turn || stock !== this.stock) return;
      const last = this.items.at(-1)?.pos ?? 0;
      this.items = this.items.concat(got.messages.filter((m) => m.pos > last));
      this.after = got.after ?? 0;
      if (this.live) this.missed = 0;
      const over = this.items.length - heldMax;
      if (over > 0) {
        this.items.splice(0, over);
        this.before = this.items[0].pos;
      }
    } catch { /* as above */ } finally {
      this.growing = false;
    }
    this.changed();
  }

  // put takes a live message. reading says that somebody is not at the end: then nothing before them is forgotten.
  // drop forgets a channel whose words somebody deleted.
  drop(channel) {
    const had = this.items.length;
    this.items = this.items.filter(({ envelope: e }) => lower(e.room ? "room:" + e.room : e.from || e.to || "_") !== lower(channel));
    return this.items.length !== had;
  }

  put(m, reading = false) {
    if (!takes(this.filter, m)) return false;
    if (!this.live || this.state === "asking") {
      this.missed++;
      return false;
    }
    const list = this.items;
    let at = list.length;
    while (at > 0 && list[at - 1].pos > m.pos) at--;
    if (at > 0 && list[at - 1].pos === m.pos) {
      list[at - 1] = m;
      return false;
    }
    if (at === 0 && list.length && this.before) return false;
    list.splice(at, 0, m);
    if (list.length > heldMax + 200) {
      if (reading) {
        list.length = heldMax;
        this.after = list.at(-1).pos;
        this.missed = 200;
      } else {
        list.splice(0, list.length - heldMax);
        this.before = list[0].pos;
      }
    }
    return true;
  }

  tiers(id, from, tiers, waits) {
    const at = this.items.findLastIndex((m) => m.envelope.id === id && (m.envelope.from ?? "") === (from ?? ""));
    if (at < 0) return false;
    this.items[at] = { ...this.items[at], tiers, waits };
    return true;
  }
}
