// The one connection to the node: a snapshot, then its events. A lost one comes back after 0.5 s, at most 8 s, and at
// once when somebody looks or the network returns.

import { where } from "./route.js";
import { t } from "./strings.js";

const kinds = ["message", "tiers", "agents", "peers", "task", "status", "asks", "document", "channel", "reset"];

export class Refused extends Error {
  constructor(refusal, status) {
    super(refusal.reason);
    this.refusal = refusal;
    this.status = status;
  }
}

// ask calls the API, or another address of the board. It throws Refused with the node's words, or TypeError when nobody answers.
export async function ask(path, options = {}) {
  const answer = await fetch(path.startsWith("/") ? path : "/api/v1/" + path, options);
  if (answer.ok) return answer.json();
  let refusal = { code: "internal", reason: answer.statusText || "HTTP " + answer.status };
  try {
    refusal = (await answer.json()).error ?? refusal;
  } catch { /* no words came with it */ }
  throw new Refused(refusal, answer.status);
}

// post changes something, which nobody can do in the past, whatever on the page may ask for it.
export const post = async (path, body) => {
  if (where().at) throw new Refused({ code: "not-allowed", reason: t("past_no_act") }, 0);
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) });
};

export class Feed {
  constructor(store, clock) {
    this.store = store;
    this.clock = clock;
    this.pause = 500;
    this.timer = 0;
    this.source = null;
    this.opening = false;
    this.opened = false; // a snapshot has come
    this.gone = () => {}; // the session is over
    store.asksChanged = () => this.asksSoon();
    store.roomsChanged = () => this.roomsSoon();
  }

  // roomsSoon asks what rooms are about, at most every few seconds: of one that is closed nobody knows it any more.
  roomsSoon() {
    this.roomsTimer ??= setTimeout(async () => {
      try {
        this.store.tookRooms((await ask("rooms")).rooms);
      } catch { /* they go by their ids until the next message */ }
      setTimeout(() => { this.roomsTimer = undefined; }, 5000);
    }, 200);
  }

  // asksSoon asks once for what waits for a person, however much changed meanwhile.
  asksSoon() {
    clearTimeout(this.asksTimer);
    this.asksTimer = setTimeout(async () => {
      try {
        this.store.tookAsks(await ask("asks"));
        this.store.changed("asks");
      } catch { /* the next change, or the next snapshot, brings them */ }
    }, 120);
  }

  start() {
    const soon = () => { if (!this.store.connected || this.store.silence(this.clock()) > 8000) this.again(); };
    addEventListener("focus", soon);
    addEventListener("online", soon);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
    return this.open();
  }

  again() {
    clearTimeout(this.timer);
    this.pause = 500;
    this.open();
  }

  async open() {
    if (this.opening) return;
    this.opening = true;
    this.source?.close();
    this.source = null;
    try {
      const snapshot = await ask("snapshot", { signal: AbortSignal.timeout(8000) });
      this.opened = true;
      this.store.snapshot(snapshot, this.clock());
      this.listen();
    } catch (err) {
      if (err instanceof Refused && err.status === 401) {
        this.gone();
        location.reload(); // the session is over: the locked page says how to go on
        return;
      }
      this.lost();
    } finally {
      this.opening = false;
    }
  }

  listen() {
    const source = new EventSource("/api/v1/events?since=" + this.store.pos);
    this.source = source;
    source.addEventListener("open", () => {
      this.pause = 500;
      this.store.connected = true;
      this.store.lostAt = 0;
      this.store.changed("status");
    });
    source.addEventListener("error", () => {
      if (source === this.source) this.lost();
    });
    for (const kind of kinds) {
      source.addEventListener(kind, (e) => {
        if (kind === "reset") this.again();
        else this.store.event(JSON.parse(e.data), this.clock());
        if (kind === "channel") this.again(); // what was said there since it was deleted
      });
    }
  }

  lost() {
    this.source?.close();
    this.source = null;
    this.store.connected = false;
    this.store.lostAt ||= this.clock();
    this.store.changed("status");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.pause * (0.75 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, 8000);
  }
}
