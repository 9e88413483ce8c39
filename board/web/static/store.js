// What the page knows. State changes here only; whoever draws is told once a frame and reads it whole.

export const rowsMax = 400; // message rows kept; older ones come by pages

export class Store {
  constructor() {
    this.loaded = false;
    this.status = null;
    this.peers = [];
    this.agents = [];
    this.tasks = new Map();
    this.messages = []; // by pos
    this.pos = 0;
    this.fresh = new Set(); // pos of rows that came while somebody looked
    this.detached = 0; // newer messages that are not in the list, since older ones are looked at
    this.reachedFirst = false;
    this.lastBeat = 0; // local clock
    this.skew = 0; // what the node's clock shows more than ours, ms; below a second it is the way here
    this.connected = false;
    this.lostAt = 0;
    this.version = null; // of the node that served this page
    this.listeners = new Set();
    this.dirty = new Set();
  }

  // changed marks parts: "status", "agents", "tasks", "messages". Drawing waits for the next frame.
  changed(...parts) {
    const first = this.dirty.size === 0;
    for (const p of parts) this.dirty.add(p);
    if (first) requestAnimationFrame(() => this.flush());
  }

  flush() {
    const dirty = this.dirty;
    this.dirty = new Set();
    if (dirty.size) for (const f of this.listeners) f(dirty);
  }

  snapshot(s, now) {
    this.loaded = true;
    this.heard(s.status, now);
    this.version ??= s.status.version;
    this.peers = s.peers;
    this.agents = s.agents;
    this.tasks = new Map(s.tasks.map((task) => [task.id, task]));
    const last = this.messages.at(-1)?.pos ?? 0;
    const joins = !this.messages.length || this.detached || (s.messages[0]?.pos ?? 0) > last + 1;
    if (joins && !this.detached) {
      this.messages = s.messages.slice();
      this.reachedFirst = s.messages.length < 100;
    } else if (!this.detached) {
      for (const m of s.messages) this.put(m);
    }
    this.pos = Math.max(this.pos, s.pos);
    this.changed("status", "agents", "tasks", "messages");
  }

  heard(status, now) {
    this.status = status;
    this.lastBeat = now;
    const skew = status.now - now;
    this.skew = Math.abs(skew) < 1000 ? 0 : skew;
  }

  put(m) {
    const list = this.messages;
    let at = list.length;
    while (at > 0 && list[at - 1].pos > m.pos) at--;
    if (at > 0 && list[at - 1].pos === m.pos) {
      list[at - 1] = m;
      return;
    }
    if (at === 0 && list.length >= rowsMax) return;
    list.splice(at, 0, m);
    if (list.length > rowsMax) {
      list.splice(0, list.length - rowsMax);
      this.reachedFirst = false;
    }
  }

  event(e, now) {
    if (e.pos) this.pos = Math.max(this.pos, e.pos);
    switch (e.type) {
      case "message":
        if (this.detached) this.detached++;
        else {
          this.put(e.message);
          this.fresh.add(e.message.pos);
        }
        this.changed("messages");
        break;
      case "tiers": {
        const at = this.messages.findLastIndex((m) => m.envelope.id === e.msgId && (m.envelope.from ?? "") === (e.from ?? ""));
        if (at >= 0) {
          this.messages[at] = { ...this.messages[at], tiers: e.tiers ?? [] };
          this.changed("messages");
        }
        break;
      }
      case "agents":
        this.agents = e.agents ?? [];
        this.changed("agents");
        break;
      case "peers":
        this.peers = e.peers ?? [];
        this.changed("agents", "status");
        break;
      case "task":
        this.tasks.set(e.task.id, { ...this.tasks.get(e.task.id), ...e.task });
        this.changed("tasks");
        break;
      case "status":
        this.heard(e.status, now);
        this.changed("status");
        break;
    }
  }

  // older puts a page before the first row. Beyond the limit the newest rows go, and what comes is only counted.
  older(page) {
    if (page.length === 0) this.reachedFirst = true;
    const first = this.messages[0]?.pos ?? Infinity;
    this.messages = page.filter((m) => m.pos < first).concat(this.messages);
    const over = this.messages.length - rowsMax;
    if (over > 0) {
      this.messages.length = rowsMax;
      this.detached += over;
    }
    this.changed("messages");
  }

  newest(page) {
    this.detached = 0;
    this.messages = page;
    this.reachedFirst = false;
    this.changed("messages");
  }

  get alone() {
    return !this.peers.some((p) => p.inside && !p.self && !p.revoked);
  }

  peer(id) {
    return this.peers.find((p) => p.peer === id);
  }

  // silence is how long the node has said nothing, in ms.
  silence(now) {
    return this.lastBeat ? now - this.lastBeat : 0;
  }

  // health: "live", "reconnecting" (3 s without a connection), "silent" (10 s without a word: actions are off).
  health(now) {
    if (this.silence(now) >= 10000) return "silent";
    if (!this.connected && this.lostAt && now - this.lostAt >= 3000) return "reconnecting";
    return "live";
  }
}
