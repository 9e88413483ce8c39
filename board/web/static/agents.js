// Agents by node: the node's own first, then by name, never by activity. A node without agents still has its row.
import { attr, busy, el, foreign, steady, text } from "./dom.js";
import { age, count, noMain, roleOf, roomOf, rtt, wayOf } from "./words.js";
import { glyph } from "./marks.js";
import { t } from "./strings.js";
import { go } from "./route.js";
import { VList } from "./vlist.js";

const foldAbove = 40; // BOARD 3
const troubled = (a) => a.state === "needs-human" || a.state === "deaf";

// stateOf is what an agent's row may claim: behind a node that is not linked everything is as of its last sign.
export function stateOf(agent, store) {
  const peer = store.past ? null : store.peer(agent.home); // of links there is no record
  return peer && !peer.self && !peer.linked ? "away" : agent.state;
}

export function underLine(agent, store, now) {
  if (agent.room) return t("room_at", { board: agent.id.slice(agent.id.lastIndexOf("@") + 1) });
  const peer = store.past ? null : store.peer(agent.home);
  if (peer && !peer.self && !peer.linked) {
    if (agent.asOf) return t("state_" + agent.state) + ", " + t("as_of", { time: age(now - agent.asOf) });
    return t("state_away") + ", " + (peer.lastSeen ? t("as_of", { time: age(now - peer.lastSeen) }) : t("as_of_unknown"));
  }
  if (store.past) return t("state_" + agent.state) + (agent.since ? " " + age(now - agent.since) : "");
  const since = agent.since ? " " + age(now - agent.since) : "";
  const state = t("state_" + agent.state) + since;
  if (agent.doing && agent.state === "working") return agent.doing + " ·" + (since || " " + t("state_working")); // that it works is said by what it does
  if (!agent.doing && (troubled(agent) || (agent.state === "unknown" && !agent.wakes))) return state; // how it wakes helps nobody now
  // "nothing: it reads its inbox" says how mail is noticed without anything that wakes.
  const alone = /^nothing: (.+)$/.exec(agent.wakes || "");
  const after = agent.doing || (alone ? wayOf(alone[1]) : agent.wakes ? t("wakes_by", { how: wayOf(agent.wakes) }) : t("wakes_unknown"));
  return state + " · " + after;
}

export function linkOf(peer, store) {
  if (peer.self) return t("this_node");
  if (store.past) return "";
  if (!peer.linked) return t("not_linked");
  const parts = [peer.transport || t("linked")];
  if (peer.rttMicros) parts.push(rtt(peer.rttMicros));
  if (peer.relayed) parts.push(t("relayed"));
  return parts.join(" · ");
}

class Agents extends HTMLElement {
  connectedCallback() {
    this.opened = new Set();
    this.title_ = el("h2", { id: "agents-title" }, t("agents"));
    this.total = el("span", { class: "count" });
    this.rows = el("div", { class: "groups" });
    this.append(el("div", { class: "head" }, this.title_, this.total), this.rows);
    attr(this.parentElement, "aria-labelledby", "agents-title");
    this.vlist = new VList(this.parentElement, this.rows, { key: (x) => x.key, estimate: 44, make: (x) => this.make(x), update: (row, x) => this.update(row, x) });
  }

  draw(store, now) {
    this.store = store;
    this.now = now;
    const s = store.status;
    this.main = s && (store.past || !noMain(s, now)) ? s.main?.agent : ""; // draw's now is the node's clock
    text(this.total, count(store.agents.length));
    const calm = store.agents.filter((a) => !troubled(a)).length;
    const byNode = Map.groupBy(store.agents, (a) => a.home);
    const peers = store.peers.filter((p) => !p.revoked || byNode.has(p.peer));
    for (const [home, list] of byNode) {
      if (!store.peer(home)) peers.push({ peer: home, name: list[0].node || home.slice(-6), linked: false, role: "", self: list[0].here });
    }
    peers.sort((a, b) => (b.self ? 1 : 0) - (a.self ? 1 : 0) || (a.name ?? "").localeCompare(b.name ?? "") || (a.peer < b.peer ? -1 : 1));
    let items = peers.flatMap((p) => this.group(p, byNode.get(p.peer) ?? [], calm > foldAbove));
    if (!items.length) items = [{ key: "nobody", kind: "none" }];
    this.vlist.set((this.last = steady(this.last, items, busy(this))));
  }

  // group is a node's rows: its head, its agents by name, and the calm ones folded to counts.
  group(p, agents, folds) {
    const out = [{ key: "n" + p.peer, kind: "node", p }];
    if (agents.length === 0) return out.concat({ key: "e" + p.peer, kind: "none", p });
    const sorted = agents.slice().sort((a, b) => a.id.localeCompare(b.id));
    const rows = (list) => list.map((a) => ({ key: a.id, kind: "agent", a }));
    if (!folds) return out.concat(rows(sorted));
    const must = (a) => troubled(a) || a.id === this.main;
    let shown = sorted.filter((a) => must(a) || stateOf(a, this.store) === "working");
    if (shown.length > foldAbove) shown = sorted.filter(must);
    const kept = new Set(shown);
    const folded = sorted.filter((a) => !kept.has(a));
    if (!folded.length) return out.concat(rows(shown));
    const open = this.opened.has(p.peer);
    const by = Map.groupBy(folded, (a) => stateOf(a, this.store));
    const words = [...by].sort((a, b) => b[1].length - a[1].length).map(([state, list]) => count(list.length) + " " + t("state_" + state)).join(", ");
    /** @type {any[]} */
    const all = [];
    return all.concat(out, rows(shown), open ? rows(folded) : [], { key: "f" + p.peer, kind: "fold", p, open, words: open ? t("fewer") : t("calm", { list: words }) });
  }

  make(x) {
    switch (x.kind) {
      case "node": return this.nodeRow(x.p);
      case "agent": return this.row(x.a);
      case "fold": return el("button", { type: "button", class: "fold", on: { click: () => this.toggle(x.p.peer) } });
    }
    return el("p", { class: "quiet no-agents" }, t(x.p ? "no_agents" : "past_no_agents"));
  }

  update(row, x) {
    if (x.kind === "node") this.drawNode(row, x.p, this.store);
    else if (x.kind === "agent") this.drawAgent(row, x.a, this.store, this.now, this.main);
    else if (x.kind === "fold") {
      text(row, x.words);
      attr(row, "aria-expanded", String(x.open));
    }
  }

  nodeRow(p) {
    const head = el("button", { type: "button", class: "node-row row", on: { click: () => go("n", p.peer, head) } },
      el("span", { class: "node-name" }), el("span", { class: "role" }), el("span", { class: "spacer" }), el("span", { class: "link" }));
    head.dataset.row = "";
    return head;
  }

  toggle(peer) {
    if (!this.opened.delete(peer)) this.opened.add(peer);
    this.last = null;
    this.dispatchEvent(new CustomEvent("redraw", { bubbles: true }));
  }

  drawNode(head, p, store) {
    const [name, role, , link] = head.children;
    if (name.dataset.of !== p.name) {
      name.dataset.of = p.name;
      const same = store.peers.filter((q) => q.name?.toLowerCase() === p.name?.toLowerCase()).length > 1;
      name.replaceChildren(foreign(p.name || p.peer.slice(-6)), same ? el("span", { class: "id" }, " " + p.peer.slice(-6)) : "");
    }
    text(role, roleOf(p.role));
    text(link, linkOf(p, store));
    attr(head, "data-linked", p.self || p.linked || store.past ? "yes" : "no");
  }

  row(a) {
    const row = el("button", { type: "button", class: "agent-row row", on: { click: () => go("a", a.id, row) } },
      glyph("unknown"), foreign(a.id, { class: "name" }), el("span", { class: "role" }), el("span", { class: "spacer" }),
      el("span", { class: "unread" }), el("span", { class: "under" }, el("bdi")));
    row.dataset.row = "";
    return row;
  }

  drawAgent(row, a, store, now, main) {
    const [mark, name, role, , unread, under] = row.children;
    text(name, a.room ? roomOf(a.id) : a.id);
    attr(name, "title", a.room ? a.id : null);
    const state = stateOf(a, store);
    attr(mark, "kind", state);
    attr(row, "data-state", state);
    text(role, a.id === main ? t("main_is") : a.role === store.peer(a.home)?.role ? "" : roleOf(a.role)); // its node's row says the usual
    attr(role, "data-main", a.id === main);
    text(unread, a.unread ? count(a.unread) : "");
    attr(unread, "title", a.unread ? t("unread", { n: count(a.unread) }) : null);
    attr(unread, "aria-label", a.unread ? t("unread", { n: count(a.unread) }) : null);
    text(under.firstElementChild, underLine(a, store, now));
    attr(under, "title", under.textContent);
  }
}
customElements.define("as-agents", Agents);
