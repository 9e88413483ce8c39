// Rows of messages: what belongs together is one row. It looks at the messages alone, so that a reload shows the same.

const pairWithin = 120e3; // a pair within 2 min shares a head (BOARD 3)
const burstAbove = 20; // messages a second; above it one line a pair
const steps = new Set(["ToolCall", "STEP_STARTED", "STEP_FINISHED", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"]);
const alone = new Set(["UserPrompt", "SelectionPrompt", "SelectionAnswer", "SelectionResolved", "SelectionExpired", "NEEDS_HUMAN", "DECISION_REQUEST"]);

export const isStep = (m) => steps.has(m.envelope.intent);

const pairs = new WeakMap(); // of a thousand messages that are folded anew whenever one comes

function pairOf(m) {
  let pair = pairs.get(m);
  if (pair === undefined) {
    const e = m.envelope;
    pairs.set(m, (pair = `${e.from ?? ""}\n${e.to ?? ""}\n${e.room ?? ""}\n${e.source}\n${m.node}`));
  }
  return pair;
}

// rowsOf: one of { kind: "message", m }, { kind: "steps", list }, { kind: "burst", list }, { kind: "repeat", list }, each with key, head, and m: its
// first message. opened holds the keys of folds that somebody opened.
export function rowsOf(messages, opened) {
  const seconds = new Map();
  for (const m of messages) {
    const s = Math.floor(m.at / 1000);
    seconds.set(s, (seconds.get(s) ?? 0) + 1);
  }
  const out = [];
  const bursts = new Map();
  for (let i = 0; i < messages.length; i++) {
    const m = messages[i];
    const second = Math.floor(m.at / 1000);
    if (seconds.get(second) > burstAbove && !alone.has(m.envelope.intent)) {
      const key = "b" + second + pairOf(m);
      const row = bursts.get(key);
      if (row) row.list.push(m);
      else {
        const made = { kind: "burst", key, m, list: [m] };
        bursts.set(key, made);
        out.push(made);
      }
      continue;
    }
    if (isStep(m)) {
      let end = i + 1;
      while (end < messages.length && isStep(messages[end]) && pairOf(messages[end]) === pairOf(m)) end++;
      if (end - i > 1) {
        out.push({ kind: "steps", key: "f" + m.pos, m, list: messages.slice(i, end) });
        i = end - 1;
        continue;
      }
    }
    const before = out.at(-1);
    if (repeats(before, m)) {
      if (before.kind === "message") out[out.length - 1] = { kind: "repeat", key: "r" + before.m.pos, m: before.m, list: [before.m, m] };
      else before.list.push(m);
      continue;
    }
    out.push({ kind: "message", key: "m" + m.pos, m });
  }
  return heads(out.flatMap((row) => spread(row, opened)));
}

// repeats: progress that says again what the row before says.
function repeats(before, m) {
  if (m.envelope.intent !== "WorkerReport" || (before?.kind !== "message" && before?.kind !== "repeat")) return false;
  const last = before.list?.at(-1) ?? before.m;
  return last.envelope.intent === "WorkerReport" && last.envelope.re === m.envelope.re && last.text === m.text && !m.envelope.blobs?.length && !last.envelope.blobs?.length && pairOf(last) === pairOf(m);
}

// spread puts the messages of an opened fold behind it; a burst of one is a message.
function spread(row, opened) {
  if (row.kind === "burst" && row.list.length === 1) return [{ kind: "message", key: "m" + row.m.pos, m: row.m }];
  if (!row.list || !opened.has(row.key)) return [row];
  return [{ ...row, open: true }, ...row.list.map((m) => ({ kind: "message", key: "m" + m.pos, m, inside: true }))];
}

function heads(rows) {
  let before = null;
  for (const row of rows) {
    const last = before?.list?.at(-1) ?? before?.m;
    row.head = !last || pairOf(last) !== pairOf(row.m) || row.m.at - last.at >= pairWithin || row.m.at < last.at - pairWithin;
    before = row;
  }
  return rows;
}

// stepWords counts what a fold of tools and steps holds.
export function stepCounts(list) {
  const files = new Set();
  let tools = 0, runs = 0;
  for (const m of list) {
    if (m.envelope.intent === "ToolCall") tools++;
    else if (m.envelope.intent !== "STEP_STARTED" && m.envelope.intent !== "RUN_STARTED") runs++;
    const path = m.envelope.value?.path;
    if (path) files.add(path);
  }
  return { tools, steps: runs || (tools ? 0 : list.length), files: files.size, took: list.at(-1).at - list[0].at };
}
