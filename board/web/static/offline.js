// What is left when the node does not answer: the page itself, by its service worker, and who and what was there when it
// last did. No words of messages are kept, and nothing outlives the session.
import { keep, kept } from "./kept.js";

const every = 15e3;
const bytesMax = 64 << 10;

let last = 0;

export function remember(store, now) {
  if (now - last < every) return;
  last = now;
  const tasks = [...store.tasks.values()].slice(0, 60).map(({ id, short, title, to, from, node, nodeName, state, at, started, ended, durationMs, diff, commit }) =>
    ({ id, short, title, to, from, node, nodeName, state, at, started, ended, durationMs, diff: diff && { added: diff.added, removed: diff.removed }, commit }));
  const agents = store.agents.slice(0, 120).map((a) => ({ ...a, doing: undefined }));
  const text = JSON.stringify({ at: now, status: store.status, peers: store.peers, agents, tasks });
  keep("snapshot", text.length <= bytesMax ? text : null);
}

export function recall() {
  try {
    return JSON.parse(kept("snapshot"));
  } catch {
    return null;
  }
}

// forget is for the end of the session.
export function forget() {
  keep("snapshot", null);
  globalThis.caches?.delete("aster").catch(() => {}); // where there are none there is nothing to forget
}

// work starts the service worker. Its address is the one constant that may become a script here.
export function work() {
  if (!navigator.serviceWorker) return;
  const policy = globalThis.trustedTypes?.createPolicy("aster", { createScriptURL: (url) => { if (url === "/sw.js") return url; throw new TypeError("not ours: " + url); } });
  navigator.serviceWorker.register(policy ? policy.createScriptURL("/sw.js") : "/sw.js").catch(() => {}); // without it the page needs the node
}
