// What the page knows. State changes here only; whoever draws is told once a frame and reads it whole.
import { MessageWindow } from "./window.js";
import { keep, kept } from "./kept.js";
import { topics } from "./words.js";

const hurried = 20; // messages a second above which drawing waits a little and takes them together
const pauseHurried = 150;

export class Store {
  constructor() {
    this.off = false; // the node is silent: nothing can be done
    this.loaded = false;
    this.status = null;
    this.peers = [];
    this.agents = [];
    this.tasks = new Map();
    this.window = new MessageWindow(() => this.changed("messages"));
    this.asks = [];
    this.ended = new Map(); // by ask: how it ended a moment ago
    this.answered = new Set(); // ids of answers given here
    this.answeredAsks = new Set();
    this.setAside = new Set(JSON.parse(kept("aside") || "[]"));
    this.waiting = 0; // for this person
    this.pos = 0;
    this.came = []; // message rows since the last drawing: [message, whether it is in the window]
    this.recent = 0; // messages in this second
    this.second = 0;
    this.reading = false; // somebody is not at the end of the messages
    this.sinceLooked = ""; // what happened while nobody looked
    this.past = 0; // the past moment that this is; 0: it is as of now
    this.asOf = 0; // when what is shown was known, if the node has not answered yet
    this.rooms = []; // open ones of this mesh
    this.roomsChanged = () => {}; // the feed asks for them
    this.asksChanged = () => {}; // the feed asks again
    this.documentChanged = () => {}; // the state document or a word about it
    this.documentWords = new Set(); // ids of those that are shown
    this.lastBeat = 0; // local clock
    this.skew = 0; // what the node's clock shows more than ours, ms; below a second it is the way here
    this.connected = false;
    this.lostAt = 0;
    this.version = null; // of the node that served this page
    this.listeners = new Set();
    this.dirty = new Set();
  }

  keepAside() {
    keep("aside", JSON.stringify([...this.setAside].slice(-200)));
  }

  // changed marks parts: "status", "agents", "tasks", "messages", "asks". Drawing waits for the next frame.
  changed(...parts) {
    const first = this.dirty.size === 0;
    for (const p of parts) this.dirty.add(p);
    if (!first) return;
    if (document.hidden) setTimeout(() => this.flush(), 1000); // no frames come: titles and notifications still do
    else if (this.recent > hurried) setTimeout(() => requestAnimationFrame(() => this.flush()), pauseHurried);
    else requestAnimationFrame(() => this.flush());
  }

  flush() {
    const dirty = this.dirty;
    this.dirty = new Set();
    if (dirty.size) for (const f of this.listeners) f(dirty);
  }

  snapshot(s, now) {
    this.loaded = true;
    this.asOf = 0;
    this.heard(s.status, now);
    this.version ??= s.status.version;
    this.peers = s.peers;
    this.tookAgents(s.agents);
    this.tasks = new Map(s.tasks.map((task) => [task.id, task]));
    this.tookAsks(s.asks);
    if (s.messages.some((m) => m.envelope.room && !topics.has(m.envelope.room))) this.roomsChanged();
    this.window.begin(s);
    this.pos = Math.max(this.pos, s.pos);
    this.changed("status", "agents", "tasks", "messages", "asks");
    this.documentChanged();
  }

  // old shows what was known when somebody last looked, until the node answers.
  old(s) {
    if (this.loaded) return;
    this.asOf = s.at;
    this.status = s.status;
    this.peers = s.peers;
    this.agents = s.agents;
    this.tasks = new Map(s.tasks.map((task) => [task.id, task]));
    this.changed("status", "agents", "tasks");
  }

  // tookAgents: some stand for rooms of other boards, which are called by what they are about.
  tookAgents(agents) {
    this.agents = agents;
    for (const a of agents) if (a.room && a.name && a.name !== a.id) topics.set(a.id, a.name);
  }

  tookRooms(rooms) {
    this.rooms = rooms;
    for (const r of rooms) if (r.topic) topics.set(r.id, r.topic);
    this.changed("agents", "messages");
  }

  tookAsks(answer) {
    this.asks = answer.asks;
    for (const e of answer.ended) this.ended.set(e.id, e);
  }

  heard(status, now) {
    this.status = status;
    this.lastBeat = now;
    const skew = status.now - now;
    this.skew = Math.abs(skew) < 1000 ? 0 : skew;
  }

  event(e, now) {
    if (e.pos) this.pos = Math.max(this.pos, e.pos);
    switch (e.type) {
      case "message":
        this.message(e.message, now);
        break;
      case "document":
        this.documentChanged();
        break;
      case "tiers":
        if (this.documentWords.has(e.msgId)) this.documentChanged();
        if (this.window.tiers(e.msgId, e.from, e.tiers ?? [], e.waits)) this.changed("messages");
        break;
      case "asks":
        this.asksChanged();
        break;
      case "channel":
        if (this.window.drop(e.channel)) this.changed("messages");
        break;
      case "agents":
        this.tookAgents(e.agents ?? []);
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

  message(m, now) {
    const second = Math.floor(now / 1000);
    if (second !== this.second) {
      this.second = second;
      this.recent = 0;
    }
    this.recent++;
    if (m.envelope.intent === "OperatorFeedback") this.documentChanged();
    if (m.envelope.room && !topics.has(m.envelope.room)) this.roomsChanged();
    const v = m.envelope.value;
    if (m.envelope.intent === "ToolCall") m.envelope.value = { toolCallName: v?.toolCallName, path: pathOf(v?.args) };
    else if (m.text.length > 700 || JSON.stringify(v ?? "").length > 1000) m.envelope.value = undefined; // who opens it asks for it
    if (m.text.length > 700) m.text = m.text.slice(0, 699) + "…";
    const added = this.window.put(m, this.reading);
    if (!document.hidden) this.came.push([m, added]);
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

function pathOf(args) {
  try {
    const a = JSON.parse(args);
    return a.file_path ?? a.path ?? a.file ?? a.notebook_path;
  } catch {
    return undefined;
  }
}
