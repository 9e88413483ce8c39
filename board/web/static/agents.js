// Agents by node: the node's own first, then by name, never by activity. A node without agents still has its row.
import { attr, busy, el, foreign, keyed, text } from "./dom.js";
import { age, count, rtt } from "./words.js";
import { glyph } from "./marks.js";
import { t } from "./strings.js";
import { go } from "./panel.js";

const foldAbove = 40; // BOARD 3
const openedMax = 200; // rows of an opened fold
const troubled = (a) => a.state === "needs-human" || a.state === "deaf";

// stateOf is what an agent's row may claim: behind a node that is not linked everything is as of its last sign.
export function stateOf(agent, store) {
  const peer = store.peer(agent.home);
  return peer && !peer.self && !peer.linked ? "away" : agent.state;
}

export function underLine(agent, store, now) {
  const peer = store.peer(agent.home);
  if (peer && !peer.self && !peer.linked) {
    if (agent.asOf) return t("state_" + agent.state) + ", " + t("as_of", { time: age(now - agent.asOf) });
    return t("state_away") + ", " + (peer.lastSeen ? t("as_of", { time: age(now - peer.lastSeen) }) : t("as_of_unknown"));
  }
  const since = agent.since ? " " + age(now - agent.since) : "";
  // "nothing: it reads its inbox" says how mail is noticed without anything that wakes.
  const alone = /^nothing: (.+)$/.exec(agent.wakes || "");
  const after = agent.doing || (alone ? alone[1] : agent.wakes ? t("wakes_by", { how: agent.wakes }) : t("wakes_unknown"));
  return t("state_" + agent.state) + since + " · " + after;
}

export function linkOf(peer) {
  if (peer.self) return t("this_node");
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
    this.groups = el("div", { class: "groups" });
    this.append(el("div", { class: "head" }, this.title_, this.total), this.groups);
    attr(this.parentElement, "aria-labelledby", "agents-title");
  }

  draw(store, now) {
    text(this.total, count(store.agents.length));
    const calm = store.agents.filter((a) => !troubled(a)).length;
    const byNode = Map.groupBy(store.agents, (a) => a.home);
    const peers = store.peers.filter((p) => !p.revoked || byNode.has(p.peer));
    for (const [home, list] of byNode) {
      if (!store.peer(home)) peers.push({ peer: home, name: list[0].node || home.slice(-6), linked: false, role: "", self: list[0].here });
    }
    peers.sort((a, b) => (b.self ? 1 : 0) - (a.self ? 1 : 0) || (a.name ?? "").localeCompare(b.name ?? "") || (a.peer < b.peer ? -1 : 1));
    keyed(this.groups, peers, (p) => p.peer, (p) => this.group(p), (node, p) => {
      this.drawNode(node, p, store);
      this.drawAgents(node, p, byNode.get(p.peer) ?? [], store, now, calm > foldAbove);
    }, busy(this));
  }

  group(p) {
    const head = el("button", { type: "button", class: "node-row row", on: { click: () => go("n", p.peer, head) } },
      el("span", { class: "node-name" }), el("span", { class: "role" }), el("span", { class: "spacer" }), el("span", { class: "link" }));
    head.dataset.row = "";
    const rows = el("div", { class: "rows" });
    const fold = el("button", { type: "button", class: "fold", hidden: true, on: { click: () => this.toggle(p.peer) } });
    const empty = el("p", { class: "quiet" }, t("no_agents"));
    return el("section", { class: "group" }, head, rows, fold, empty);
  }

  toggle(peer) {
    if (!this.opened.delete(peer)) this.opened.add(peer);
    this.dispatchEvent(new CustomEvent("redraw", { bubbles: true }));
  }

  drawNode(node, p, store) {
    const head = node.firstElementChild;
    const [name, role, , link] = head.children;
    if (name.dataset.of !== p.name) {
      name.dataset.of = p.name;
      const same = store.peers.filter((q) => q.name?.toLowerCase() === p.name?.toLowerCase()).length > 1;
      name.replaceChildren(foreign(p.name || p.peer.slice(-6)), same ? el("span", { class: "id" }, " " + p.peer.slice(-6)) : "");
    }
    text(role, p.role);
    text(link, linkOf(p));
    attr(head, "data-linked", p.self || p.linked ? "yes" : "no");
  }

  drawAgents(node, p, agents, store, now, folds) {
    const [, rows, fold, empty] = node.children;
    attr(empty, "hidden", agents.length > 0);
    const sorted = agents.slice().sort((a, b) => a.id.localeCompare(b.id));
    const main = store.status?.main?.agent;
    const open = this.opened.has(p.peer);
    let shown = sorted;
    let folded = [];
    if (folds) {
      shown = sorted.filter((a) => troubled(a) || a.id === main || stateOf(a, store) === "working");
      folded = sorted.filter((a) => !shown.includes(a));
      if (shown.length > foldAbove) {
        const keep = new Set(shown.filter((a) => troubled(a) || a.id === main));
        folded = sorted.filter((a) => !keep.has(a));
        shown = [...keep];
      }
      if (open) shown = shown.concat(folded.slice(0, openedMax));
    }
    attr(fold, "hidden", folded.length === 0);
    attr(fold, "aria-expanded", folded.length ? String(open) : null);
    if (folded.length) {
      const by = Map.groupBy(folded, (a) => stateOf(a, store));
      const words = [...by].sort((a, b) => b[1].length - a[1].length).map(([state, list]) => count(list.length) + " " + t("state_" + state)).join(", ");
      text(fold, open ? t("fewer") : t("calm", { list: words }));
    }
    keyed(rows, shown, (a) => a.id, (a) => this.row(a), (row, a) => this.drawAgent(row, a, store, now, main), busy(this));
  }

  row(a) {
    const row = el("button", { type: "button", class: "agent-row row", on: { click: () => go("a", a.id, row) } },
      glyph("unknown"), foreign(a.id, { class: "name" }), el("span", { class: "role" }), el("span", { class: "spacer" }),
      el("span", { class: "unread" }), el("span", { class: "under" }, el("bdi")));
    row.dataset.row = "";
    return row;
  }

  drawAgent(row, a, store, now, main) {
    const [mark, , role, , unread, under] = row.children;
    const state = stateOf(a, store);
    attr(mark, "kind", state);
    attr(row, "data-state", state);
    text(role, a.id === main ? t("main_is") : a.role);
    attr(role, "data-main", a.id === main);
    text(unread, a.unread ? count(a.unread) : "");
    attr(unread, "title", a.unread ? t("unread", { n: count(a.unread) }) : null);
    attr(unread, "aria-label", a.unread ? t("unread", { n: count(a.unread) }) : null);
    text(under.firstElementChild, underLine(a, store, now));
    attr(under, "title", under.textContent);
  }
}
customElements.define("as-agents", Agents);
