// A client written from the wire contract alone: node client.mjs URL ID MAIN all|silent
// It says what it did as JSON lines and waits where its tester has to act; it trusts nothing but frames.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [url, me, main, mode] = process.argv.slice(2);
const WebSocket = globalThis.WebSocket ?? createRequire(import.meta.url)("ws");
const say = (did, more = {}) => console.log(JSON.stringify({ did, ...more }));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const told = async () => (await lines.next()).value;
let n = 0;

// session is one connection. Frames wait in got until someone takes them.
class Session {
  got = [];
  waiting = [];
  constructor() {
    this.ws = new WebSocket(url);
    this.opened = new Promise((ok) => (this.ws.onopen = ok));
    this.closed = new Promise((ok) => (this.ws.onclose = ({ code, reason }) => ok({ code, reason })));
    this.ws.onerror = () => {};
    this.ws.onmessage = ({ data }) => {
      const f = JSON.parse(data);
      const at = this.waiting.findIndex((w) => w.is(f));
      if (at >= 0) this.waiting.splice(at, 1)[0].ok(f);
      else this.got.push(f);
      this.watch?.(f);
    };
  }
  take(is) {
    const at = this.got.findIndex(is);
    if (at >= 0) return Promise.resolve(this.got.splice(at, 1)[0]);
    return new Promise((ok) => this.waiting.push({ is, ok }));
  }
  named(name, is = () => true) {
    return this.take((f) => f.name === name && is(f));
  }
  send(frame) {
    this.ws.send(JSON.stringify({ id: `${me}-${++n}`, timestamp: Date.now(), ...frame }));
  }
  tell(name, value, more = {}) {
    const msgId = `${me}-m${Date.now()}-${++n}`;
    this.send({ type: "CUSTOM", name, msgId, value, ...more });
    return msgId;
  }
  ack(f) {
    this.send({ type: "CUSTOM", name: "AckProcessed", ...(f.agentId ? { targetAgentId: f.agentId } : {}), value: { ackFor: f.msgId } });
  }
  async hello(capabilities = ["ack-layer"]) {
    await this.opened;
    this.send({ type: "HELLO", agentId: me, agentName: me, protocolVersion: "0.3", capabilities });
    const info = await this.named("ConnectionInfo");
    say("hello", { role: info.value.role, keyed: info.value.keyed });
  }
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

// ask sends a verb to the hub and takes its answer.
async function ask(s, name, value) {
  const id = s.tell(name, value);
  const f = await s.take((f) => f.value?.re_msgId === id || (f.name === "ServerNotice" && f.value?.msgId === id));
  if (f.name === "ServerNotice") throw new Error(f.value.text);
  return f.value;
}

// fetch takes an attachment at the hub, piece by piece.
async function fetch(s, f, a) {
  const pieces = [];
  for (let i = 0, n = 1; i < n; i++) {
    const v = await ask(s, "ArtifactGet", { artifact: a.sha256, chunk_index: i, of: f.msgId });
    n = v.chunk_count;
    pieces.push(Buffer.from(v.data, "base64"));
    if (hash(pieces[i]) !== v.sha256) throw new Error(`piece ${i} is damaged`);
  }
  const whole = Buffer.concat(pieces);
  if (hash(whole) !== a.sha256 || whole.length !== a.size) throw new Error("it is not what was named");
  return whole;
}

// give puts an attachment to the hub from where it is, and stops before piece upTo.
async function give(s, bytes, upTo = Infinity) {
  const artifact = hash(bytes);
  let state = await ask(s, "ArtifactOffer", { artifact, size: bytes.length });
  const began = state.have;
  for (let i = began; i < state.chunk_count && i < upTo; i++) {
    const piece = bytes.subarray(i * state.chunk_size, (i + 1) * state.chunk_size);
    const put = { artifact, chunk_index: i, encoding: "base64", data: piece.toString("base64"), sha256: hash(piece) };
    state = await ask(s, "ArtifactPut", put);
  }
  return { began, complete: state.complete, named: { name: "back.bin", mime: "application/x-back", size: bytes.length, sha256: artifact, source: "hub" } };
}

// attachments takes 20 MiB, and gives them back the other way round over two connections.
async function attachments(s) {
  const f = await s.named("Request", (f) => f.value?.attachments);
  s.ack(f);
  const whole = await fetch(s, f, f.value.attachments[0]);
  say("fetched", { bytes: whole.length, name: f.value.attachments[0].name });
  whole.reverse();
  await give(s, whole, 30);
  s.ws.close();
  await s.closed;
  s = new Session();
  await s.hello();
  const { began, complete, named } = await give(s, whole);
  const id = s.tell("Report", { summary: "the other way round", attachments: [named], re_msgId: f.msgId }, { targetAgentId: f.agentId });
  say("gave", { began, complete, msgId: id });
  return s;
}

async function all() {
  let s = new Session();
  await s.hello();
  const task = await s.named("Delegate", (f) => f.targetAgentId === me);
  s.ack(task);
  const report = s.tell("WorkerReport", { unit: "u1", status: "done", summary: "by hand", re_msgId: task.msgId }, { targetAgentId: task.agentId, parentId: task.id });
  await s.named("AckProcessed", (f) => f.value.ackFor === report && f.agentId === task.agentId);
  say("report", { from: task.agentId });
  s = await attachments(s);

  s.tell("RoomCreate", { topic: "plan", participants: [main] });
  const { value: room } = await s.named("RoomCreated");
  const word = s.tell("Note", { text: `${me} in the room` }, { roomId: room.roomId });
  await s.named("Ack", (f) => f.value.ackFor === word && f.value.from === `room:${room.roomId}`);
  say("room", { roomId: room.roomId });
  const answer = await s.named("Note", (f) => f.roomId === room.roomId);
  s.ack(answer);
  say("heard", { text: answer.value.text, speaker: answer.speakerClass });
  s.tell("RoomLeave", { roomId: room.roomId });
  await s.named("RoomLeft", (f) => f.value.agentId === me);
  s.tell("Note", { text: "from outside" }, { roomId: room.roomId });
  await s.named("RoomGuard", (f) => f.value.rule === "not-participant");
  say("left");

  s.tell("SelectionPrompt", { promptId: `${me}-q`, text: "Which?", options: [{ label: "red" }, { label: "blue" }] });
  const chosen = await s.named("SelectionAnswer", (f) => f.value.promptId === `${me}-q`);
  if (chosen.msgId) s.ack(chosen);
  say("answered", { labels: chosen.value.selectedLabels });

  s.ws.close();
  await s.closed;
  say("away");
  await told();
  s = new Session();
  await s.hello();
  const mail = await s.named("Request");
  s.ack(mail);
  say("mail", { text: mail.value.text });

  const why = await s.named("ConnectionRejected");
  say("revoked", { code: (await s.closed).code, why: why.value.code });
  s = new Session();
  say("refused", { code: (await s.closed).code, shown: s.got.filter((f) => f.name !== "ConnectionRejected").length });
}

// silent acknowledges nothing. It connects again whenever it is told to.
async function silent() {
  for (;;) {
    const s = new Session();
    s.watch = (f) => f.targetAgentId === me && f.msgId && f.name === "Request" && say("got", { msgId: f.msgId });
    await s.hello([]);
    const order = await told();
    // An answer behind all that came, and behind the ping by which the hub learns that it was read: who goes between the
    // two may be given the last messages again, for the hub cannot know.
    s.send({ type: "CUSTOM", name: "RequestChannelHistory", value: { channelKey: me } });
    await s.named("ChannelHistory");
    s.ws.close();
    await s.closed;
    say("away");
    if (order === "end") return;
  }
}

await (mode === "silent" ? silent() : all());
process.exit(0);
