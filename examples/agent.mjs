// A whole agent of an Asterism board, to start yours from: node agent.mjs [URL] [ID]
// URL is the board's socket, with ?key= (or peerKey=, upstreamKey=) where you were given one. It needs Node 22, or an
// older Node and `npm install ws`. Put your work into `work`.
import { createHash, randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const url = process.argv[2] ?? "ws://127.0.0.1:7878/ws";
const me = process.argv[3] ?? "agent-mjs";
const WebSocket = globalThis.WebSocket ?? createRequire(import.meta.url)("ws");

const firstWait = 500, longestWait = 30_000; // milliseconds between attempts
let wait = firstWait;
let rejected = ""; // why the board refused us, in its words
const seen = new Set(); // msgIds that were dealt with: a board may give a message again
const owed = new Map(); // msgId → frame that the board has not acknowledged yet
const asked = new Map(); // msgId → what waits for the board's own answer: { frame, ok, no }
let ws, welcome;

// work is given the task and the files that came with it, { name, mime, bytes } each, and may give files back.
async function work(task, files) {
  return { summary: `looked at: ${task}`, files };
}

function connect() {
  welcome = false;
  ws = new WebSocket(url);
  const hello = { agentId: me, agentName: me, role: "local", protocolVersion: "0.3", capabilities: ["ack-layer"] };
  ws.onopen = () => send({ type: "HELLO", ...hello });
  ws.onmessage = ({ data }) => {
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return; // not ours to judge
    }
    take(frame).catch((err) => console.error(`${frame.name}: ${err.message}`));
  };
  ws.onerror = () => {}; // a close follows and says all there is
  ws.onclose = ({ code, reason }) => ended(code, rejected || reason);
}

function ended(code, reason) {
  if (code === 4403 || code === 4003) return stop(`refused: ${reason}`); // asking again would change nothing
  if (welcome && (code === 1000 || code === 1005)) return stop(`another client is ${me} now`);
  setTimeout(connect, wait);
  wait = Math.min(2 * wait, longestWait);
}

function stop(why) {
  console.error(why);
  process.exitCode = 1;
}

function send(frame) {
  if (ws.readyState === 1) ws.send(JSON.stringify({ id: randomUUID(), timestamp: Date.now(), ...frame }));
}

// tell sends what must arrive: it is sent again after each reconnect until the board has acknowledged it.
function tell(target, name, value, more = {}) {
  const msgId = randomUUID();
  owed.set(msgId, { type: "CUSTOM", name, targetAgentId: target, msgId, value, ...more });
  send(owed.get(msgId));
}

// ask puts a question to the board itself, after a reconnect once more, and returns the answer's value.
function ask(name, value) {
  const msgId = randomUUID();
  return new Promise((ok, no) => {
    asked.set(msgId, { frame: { type: "CUSTOM", name, msgId, value }, ok, no });
    send(asked.get(msgId).frame);
  });
}

function answered(id, done) {
  const waiting = asked.get(id);
  if (waiting) done(waiting);
  asked.delete(id);
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

// fetchFile takes an attachment of a message from the board, piece by piece.
async function fetchFile(f, { name, mime, sha256 }) {
  const pieces = [];
  for (let count = 1; pieces.length < count; ) {
    const piece = await ask("ArtifactGet", { artifact: sha256, chunk_index: pieces.length, of: f.msgId, from: f.agentId });
    count = piece.chunk_count;
    pieces.push(Buffer.from(piece.data, "base64"));
  }
  const bytes = Buffer.concat(pieces);
  if (hash(bytes) !== sha256) throw new Error(`${name} is damaged`);
  return { name, mime, bytes };
}

// giveFile puts a file to the board, from where an earlier attempt was cut off, and returns how a message names it.
async function giveFile({ name, mime, bytes }) {
  const artifact = hash(bytes);
  let state = await ask("ArtifactOffer", { artifact, size: bytes.length });
  while (!state.complete) {
    const piece = bytes.subarray(state.have * state.chunk_size, (state.have + 1) * state.chunk_size);
    const put = { artifact, chunk_index: state.have, encoding: "base64", data: piece.toString("base64"), sha256: hash(piece) };
    state = await ask("ArtifactPut", put);
  }
  return { name, mime, size: bytes.length, sha256: artifact, source: "hub" };
}

async function each(list, f) {
  const out = [];
  for (const item of list) out.push(await f(item)); // one after the other: each may be large
  return out;
}

async function take(f) {
  if (f.name === "ConnectionRejected") rejected = `${f.value?.code}: ${f.value?.reason}`;
  if (f.name === "ConnectionInfo") {
    // Only this says that the board has taken us; a board that refuses says SERVER_HELLO before.
    welcome = true;
    wait = firstWait;
    console.log(`${f.value.agentId} is ${f.value.role}`);
    for (const frame of owed.values()) send(frame);
    for (const { frame } of asked.values()) send(frame);
    return;
  }
  if (!welcome) return;
  if (f.name === "Ack" || f.name === "AckProcessed") owed.delete(f.value?.ackFor);
  if (f.name === "ArtifactState" || f.name === "ArtifactPiece") return answered(f.value.re_msgId, (w) => w.ok(f.value));
  if (f.name === "ServerNotice" && f.value?.kind === "refused") {
    owed.delete(f.value.msgId);
    answered(f.value.msgId, (w) => w.no(new Error(f.value.text)));
    console.error(f.value.text);
  }
  if (f.targetAgentId !== me || f.name === "Ack" || f.name === "AckProcessed") return; // the roster, history, receipts
  if (f.name === "Ping") return send({ type: "CUSTOM", name: "Pong", targetAgentId: f.agentId, value: { for: f.id } });
  if (!f.msgId) return;
  // A program that must not lose a task writes it down before this line: from here on the board forgets it.
  send({ type: "CUSTOM", name: "AckProcessed", targetAgentId: f.agentId, value: { ackFor: f.msgId } });
  if (seen.has(f.msgId)) return;
  seen.add(f.msgId);
  if (seen.size > 1024) seen.delete(seen.values().next().value);
  if (f.name !== "Delegate") return console.log(f.agentId ?? f.source, f.name, JSON.stringify(f.value));
  const task = f.value?.task ?? f.value?.re ?? f.value?.text ?? "";
  console.log(`${f.agentId} asks: ${task}`);
  const report = { unit: f.value?.unit ?? task.slice(0, 60), re_msgId: f.msgId };
  try {
    const here = (f.value?.attachments ?? []).filter((a) => a.source === "hub");
    const { summary, files = [] } = await work(task, await each(here, (a) => fetchFile(f, a)));
    Object.assign(report, { status: "done", summary, attachments: await each(files, giveFile) });
  } catch (err) {
    Object.assign(report, { status: "blocked", summary: err.message });
  }
  tell(f.agentId, "WorkerReport", report, { contextId: f.contextId ?? f.threadId, parentId: f.id });
}

connect();
