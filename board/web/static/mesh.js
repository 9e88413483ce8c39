// The mesh as a picture: nodes on a ring, this one on top, a line for each of its links. From 24 nodes on it is a table.
import { attr, el, foreign, keyed, svg, text } from "./dom.js";
import { age, bytes, count, roleOf, rtt, timeOfDay } from "./words.js";
import { linkOf } from "./agents.js";
import "./claims.js";
import "./figures.js";
import { go, show } from "./route.js";
import { t } from "./strings.js";

const tableFrom = (narrow) => (narrow ? 6 : 24); // BOARD 6; a phone has no room for more beside their links' words
// A phone's picture is as wide as the phone, so that its words are as large as others.
const pictureOf = (narrow) => (narrow ? { width: 380, height: 320, rx: 97, ry: 118 } : { width: 720, height: 400, rx: 270, ry: 150 });
const half = 26; // of a node's height

// On a phone nodes stand above and below this one, two side by side at most: [across, down].
const spots = [[], [[0, 1]], [[0, -1], [0, 1]], [[0, -1], [-1, 1], [1, 1]], [[-1, -1], [1, -1], [-1, 1], [1, 1]]];

function placesOf(n, cx, cy, rx, ry, narrow) {
  if (narrow) return spots[n].map(([x, y]) => [cx + x * rx, cy + y * ry]);
  return Array.from({ length: n }, (_, i) => {
    const a = (i / n) * 2 * Math.PI - Math.PI / 2 + (n === 1 ? Math.PI / 2 : n === 2 ? Math.PI / 2 : 0);
    return [cx + rx * Math.cos(a), cy + ry * Math.sin(a)];
  });
}

// wide is about how wide words are drawn, in px, at 11 px a letter: those of CJK are square.
const wide = (words) => [...words].reduce((sum, c) => sum + (c >= "\u2e80" ? 11 : 6.6), 0);

// office says who is main, in which term, and by whom elected.
function office(main) {
  if (!main.peer) return [t("main_none")];
  const values = { agent: main.agent || main.node || "", node: main.node || "", term: count(main.term), time: timeOfDay(main.lost ?? 0) };
  const out = [t(main.lost ? "main_lost" : "main_in_term", values)];
  if (main.handing) out.push(t("main_handing"));
  if (main.voters?.length > 1) out.push(t("main_voters", { voters: main.voters.join(", ") }));
  return out;
}

// officeOf is a node's role; who holds the main office is main, whatever else its certificate lets it be.
const officeOf = (p, store) => (store.status.main.peer !== p.peer ? roleOf(p.role) : p.role === "main" ? t("main_is") : t("main_is") + " · " + roleOf(p.role));

class Mesh extends HTMLElement {
  connectedCallback() {
    this.count = el("span", { class: "count" });
    this.said = el("p", { class: "quiet summary" });
    this.picture = svg("svg", { class: "ring", role: "group", "aria-label": t("mesh") });
    this.body = el("tbody");
    const head = ["f_node", "f_role", "f_link", "f_trip", "f_behind", "f_traffic", "f_agents", "f_version"].map((k) => el("th", { scope: "col" }, t(k)));
    this.table = el("div", { class: "table" }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), this.body));
    this.claims = /** @type {any} */ (el("as-claims"));
    this.figures = /** @type {any} */ (el("as-figures"));
    this.append(el("div", { class: "head" }, el("h2", { id: "mesh-title" }, t("mesh")), this.count, el("span", { class: "spacer" }), el("button", { type: "button", class: "narrow", on: { click: () => show("agenda") } }, t("agenda")), el("button", { type: "button", class: "narrow", on: { click: () => show("settings") } }, t("settings"))), this.said, this.picture, this.table, this.claims, this.figures);
  }

  draw(store, now) {
    if (this.hidden || !store.status) return;
    const peers = store.peers.filter((p) => !p.revoked).sort((a, b) => (b.self ? 1 : 0) - (a.self ? 1 : 0) || (a.name ?? "").localeCompare(b.name ?? ""));
    text(this.count, count(peers.length));
    const main = store.status.main;
    const others = peers.length - 1;
    text(this.said, [others ? t("nodes_linked", { n: count(store.status.linked), of: count(others) }) : t("nodes_alone"), ...office(main)].join(" · "));
    this.claims.draw(now);
    this.figures.draw(now);
    const drawn = peers.length < tableFrom(innerWidth < 720) && peers.length > 1;
    attr(this.picture, "hidden", !drawn);
    if (drawn) this.drawRing(peers, store, now);
    keyed(this.body, peers, (p) => p.peer, (p) => this.row(p), (row, p) => this.drawRow(row, p, store, now));
  }

  drawRing(peers, store, now) {
    const narrow = innerWidth < 720;
    const { width, height, rx, ry } = pictureOf(narrow);
    const key = width + JSON.stringify(peers.map((p) => [p.peer, p.name, p.role, p.linked, p.transport, p.relayed, p.version, Math.round((p.rttMicros ?? 0) / 100), p.behind > 0])) + store.status.main.peer + store.agents.length;
    if (this.of === key) return;
    this.of = key;
    const [self, ...others] = peers;
    const cx = width / 2, cy = height / 2;
    const places = placesOf(others.length, cx, cy, rx, ry, narrow);
    const nodes = [self, ...others].map((p, i) => this.node(p, ...(i ? places[i - 1] : [cx, cy]), store, narrow));
    const all = places.map(([, y]) => y);
    const top = narrow ? Math.min(cy, ...all) - half - 14 : 0, low = narrow ? Math.max(cy, ...all) + half + 14 : height; // a phone has no room for what is empty
    attr(this.picture, "viewBox", `0 ${top.toFixed(0)} ${width} ${(low - top).toFixed(0)}`);
    const kids = narrow ? [] : [svg("ellipse", { cx, cy, rx, ry, class: "orbit" })];
    others.forEach((p, i) => {
      const [x, y] = places[i];
      const words = p.linked ? [p.transport, p.rttMicros ? rtt(p.rttMicros) : "", p.relayed ? t("relayed") : ""].filter(Boolean).join(" · ") : t("not_linked");
      // In the middle of what can be seen of the line between the two, and within the picture.
      const leaves = (w) => Math.min(Math.abs(x - cx) > 1 ? w / 2 / Math.abs(x - cx) : 1, Math.abs(y - cy) > 1 ? half / Math.abs(y - cy) : 1);
      const at = (leaves(nodes[0].wide) + 1 - leaves(nodes[i + 1].wide)) / 2, room = wide(words) / 2 + 6;
      const mx = Math.max(room, Math.min(width - room, cx + (x - cx) * at)), my = cy + (y - cy) * at;
      kids.push(svg("line", { x1: cx, y1: cy, x2: x, y2: y, class: "link", "data-linked": p.linked ? "yes" : "no", "data-relayed": p.relayed ? "yes" : "no" }));
      const label = svg("text", { x: mx, y: my + 4, class: "label" });
      text(label, words);
      const back = svg("rect", { x: mx - room, y: my - 9, width: 2 * room, height: 18, rx: 4, class: "label-back" });
      kids.push(back, label);
    });
    kids.push(...nodes);
    const active = this.picture.contains(document.activeElement) ? /** @type {SVGElement} */ (document.activeElement).dataset.peer : null;
    this.picture.replaceChildren(...kids);
    if (active) this.picture.querySelector(`[data-peer="${CSS.escape(active)}"]`)?.focus();
  }

  node(p, x, y, store, narrow) {
    const agents = store.agents.filter((a) => a.home === p.peer).length;
    const counted = agents === 1 ? t("one_agent") : t("n_agents", { n: count(agents) });
    const name = (p.name || p.peer.slice(-6)).slice(0, 22);
    const other = p.version && p.version !== store.status.version && p.version !== "aster " + store.status.version ? (p.version.length > 16 ? p.version.slice(0, 16) + "…" : p.version) : "";
    const g = /** @type {any} */ (svg("g", { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: "node", tabindex: 0, role: "button", "data-peer": p.peer, "data-row": "", "data-self": p.self ? "yes" : "no", "data-linked": p.self || p.linked ? "yes" : "no",
      "data-main": store.status.main.peer === p.peer ? "yes" : "no", "aria-label": [p.name, officeOf(p, store), linkOf(p, store), counted].join(", ") }));
    const title = svg("text", { x: 0, y: -3, class: "name" }), role = svg("text", { x: 0, y: 14, class: "sub" });
    text(title, name);
    const about = [officeOf(p, store), other, counted].filter(Boolean);
    while (narrow && about.length > 1 && wide(about.join(" · ")) > 154) about.splice(about.length > 2 ? 1 : 0, 1); // its details say it
    text(role, about.join(" · "));
    const w = (g.wide = Math.min(narrow ? 182 : 400, Math.max(112, wide(name) * 1.2 + 40, wide(role.textContent) + 28)));
    g.append(svg("rect", { x: -w / 2, y: -26, width: w, height: 52, rx: 10 }), title, role);
    g.addEventListener("click", () => go("n", p.peer, g));
    g.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); go("n", p.peer, g); } });
    return g;
  }

  row(p) {
    const open = el("button", { type: "button", class: "link-button", on: { click: () => go("n", p.peer, open) } }, foreign(""));
    open.dataset.row = "";
    return el("tr", {}, el("th", { scope: "row" }, open), ...Array.from({ length: 6 }, () => el("td")), el("td", { class: "version" }));
  }

  drawRow(row, p, store, now) {
    const [name, role, link, trip, behind, traffic, agents, version] = row.children;
    const same = store.peers.filter((q) => q.name?.toLowerCase() === p.name?.toLowerCase()).length > 1;
    text(name.firstElementChild.firstElementChild, (p.name || p.peer.slice(-6)) + (same ? " " + p.peer.slice(-6) : ""));
    text(role, officeOf(p, store));
    text(link, p.self ? t("this_node") : p.linked ? (p.transport || t("linked")) + " · " + t(p.relayed ? "relayed" : "direct") : t("not_linked") + (p.lastSeen ? ", " + t("as_of", { time: age(now - p.lastSeen) }) : ""));
    attr(link, "data-tone", p.self || p.linked ? null : "wait");
    text(trip, p.rttMicros ? rtt(p.rttMicros) : "–");
    text(behind, p.self ? "–" : count(p.behind));
    text(traffic, p.bytesIn || p.bytesOut ? "↓ " + bytes(p.bytesIn ?? 0) + " ↑ " + bytes(p.bytesOut ?? 0) : "–");
    text(agents, count(store.agents.filter((a) => a.home === p.peer).length));
    text(version, p.version || t("unknown"));
    attr(version, "title", p.version || null);
  }
}
customElements.define("as-mesh", Mesh);
