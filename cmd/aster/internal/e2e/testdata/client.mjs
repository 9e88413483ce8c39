// A client written from the wire contract alone: node client.mjs URL ID MAIN all|silent
// It says what it did as JSON lines and waits where its tester has to act; it trusts nothing but frames.
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

async function all() {
  let s = new Session();
  await s.hello();
  const task = await s.named("Delegate", (f) => f.targetAgentId === me);
  s.ack(task);
  const report = s.tell("WorkerReport", { unit: "u1", status: "done", summary: "by hand", re_msgId: task.msgId }, { targetAgentId: task.agentId, parentId: task.id });
  await s.named("AckProcessed", (f) => f.value.ackFor === report && f.agentId === task.agentId);
  say("report", { from: task.agentId });

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
