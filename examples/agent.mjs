// A whole agent of an Asterism board, to start yours from: node agent.mjs [URL] [ID]
// URL is the board's socket, with ?key= (or peerKey=, upstreamKey=) where you were given one. It needs Node 22, or an
// older Node and `npm install ws`. Put your work into `work`.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const url = process.argv[2] ?? "ws://127.0.0.1:7878/ws";
const me = process.argv[3] ?? "agent-mjs";
const WebSocket = globalThis.WebSocket ?? createRequire(import.meta.url)("ws");

const firstWait = 500, longestWait = 30_000; // milliseconds between attempts
let wait = firstWait;
let rejected = ""; // why the board refused us, in its words
const seen = new Set(); // msgIds that were dealt with: a board may give a message again
const owed = new Map(); // msgId → frame that the board has not acknowledged yet
let ws, welcome;

async function work(task) {
  return `looked at: ${task}`;
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

async function take(f) {
  if (f.name === "ConnectionRejected") rejected = `${f.value?.code}: ${f.value?.reason}`;
  if (f.name === "ConnectionInfo") {
    // Only this says that the board has taken us; a board that refuses says SERVER_HELLO before.
    welcome = true;
    wait = firstWait;
    console.log(`${f.value.agentId} is ${f.value.role}`);
    for (const frame of owed.values()) send(frame);
    return;
  }
  if (!welcome) return;
  if (f.name === "Ack" || f.name === "AckProcessed") owed.delete(f.value?.ackFor);
  if (f.name === "ServerNotice" && f.value?.kind === "refused") {
    owed.delete(f.value.msgId);
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
    Object.assign(report, { status: "done", summary: await work(task) });
  } catch (err) {
    Object.assign(report, { status: "blocked", summary: err.message });
  }
  tell(f.agentId, "WorkerReport", report, { contextId: f.contextId ?? f.threadId, parentId: f.id });
}

connect();
