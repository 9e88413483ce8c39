// What the details of a task, an agent and a node say. Messages are in thread.js.
import { el, foreign } from "./dom.js";
import { adaptersOf, age, aliveOf, count, roleOf, roomOf, rtt, taskID, timeNode, wayOf } from "./words.js";
import { glyph, taskGlyph } from "./marks.js";
import { diffNode, elapsed } from "./work.js";
import { taskFiles } from "./attach.js";
import { linkOf, stateOf, underLine } from "./agents.js";
import { code, facts, messageBody, receipts, threadNodes } from "./thread.js";
import { go, select } from "./route.js";
import { ask } from "./feed.js";
import { covered, healthCharts, spark } from "./spark.js";
import { t } from "./strings.js";

export const openStates = new Set(["queued", "delivered", "running"]);

const button = (name, key, act, cls = "") => el("button", { type: "button", class: cls, "data-act": name, on: { click: act } }, t(key));
const does = (detail) => dispatchEvent(new CustomEvent("act", { detail }));

// sureNode names an effect and asks once.
function sureNode(words, yes, no, act, panel) {
  return el("div", { class: "sure" }, el("p", {}, foreign(words)), button("yes", yes, act, "danger"), button("no", no, () => panel.askSure("")));
}

function taskBody(task, store, now, panel) {
  const state = el("span", { class: "with-glyph" }, glyph(taskGlyph[task.state] ?? "unknown"), t("task_" + task.state));
  const out = [foreign(task.title, { class: "words title" }), facts([
    ["state", state], ["summary", task.summary], ["id", code(taskID(task) + "  " + task.id)], ["from", task.from || t("a_person")], ["to", task.to],
    ["home", task.nodeName], ["attempt", task.attempt > 1 ? String(task.attempt) : ""], ["at", timeNode(task.at, now)],
    ["started", task.started ? timeNode(task.started, now) : ""], ["ended", task.ended ? timeNode(task.ended, now) : ""],
    ["took", elapsed(task, now)], ["exit", task.exit === undefined ? "" : task.exit === 0 && task.state === "failed" ? t("exit_of_program", { n: 0 }) : String(task.exit)],
    ["diff", task.diff ? el("span", {}, ...diffNode(task.diff)) : ""], ["files", code((task.diff?.paths ?? []).join("\n"))],
    ["commit", task.commit ? code(task.commit) : openStates.has(task.state) ? "" : t("no_commit")], ["branch", task.commit ? code("aster/" + taskID(task).replace(/^t-/, "")) : ""], ["base", code(task.base)]])];
  if (task.commit) out.push(el("p", { class: "command" }, el("code", {}, "aster task fetch " + taskID(task))));
  if (task.commit && task.state !== "done" && !openStates.has(task.state)) out.push(el("p", {}, t("commit_not_done")));
  const acts = el("p", { class: "acts" });
  if (openStates.has(task.state) && !store.past) {
    if (panel.sure) {
      out.push(sureNode(t("cancel_sure", { id: taskID(task) }), "cancel_yes", "cancel_no", () => panel.does("tasks/" + encodeURIComponent(task.id) + "/cancel", {}, (got) => store.event({ type: "task", task: got }, now)), panel));
    } else acts.append(button("begin", "cancel_task", () => panel.askCancel()));
  }
  if (task.to && !store.past && store.agents.some((a) => a.id === task.to)) acts.append(button("reply", "reply_to_task", () => does({ name: "reply-to", to: task.to, re: task.id, short: taskID(task) })));
  acts.append(button("filter", "task_messages", () => select({ task: task.id })));
  out.push(acts);
  out.push(...taskFiles(task, panel.thread, panel));
  if (task.tail) out.push(el("h3", {}, t("output")), foreign(task.tail, { class: "words output" }));
  // That it is replicated is known of its message alone.
  const tiers = task.tiers ?? [], asked = panel.thread?.messages.find((m) => m.envelope.id === task.id)?.tiers ?? [];
  out.push(...receipts(task, [...tiers, ...asked.filter((x) => !tiers.some((y) => y.tier === x.tier))], store, now, !openStates.has(task.state)));
  if (panel.thread?.messages.length) out.push(...threadNodes(panel.thread, task.id, store, now));
  return out;
}

// handOver asks main, wherever it is, to hand over to an agent inside.
function handOver(a, store, panel) {
  const main = store.status?.main ?? {};
  if (store.past || a.role !== "local" || !main.peer || a.id === main.agent || main.handing) return [];
  const of = main.agent || main.node || "";
  if (panel.sure !== "handover") return [el("p", { class: "acts" }, button("begin", "hand_over", () => panel.askSure("handover")))];
  return [sureNode(t("hand_over_sure", { agent: a.id, node: a.node ?? "", main: of }), "hand_over_yes", "hand_over_no",
    () => panel.does("main/handoff", { agent: a.id }, () => t("hand_over_done", { agent: a.id, main: of })), panel)];
}

function agentBody(a, store, now, panel) {
  const tasks = [...store.tasks.values()].filter((x) => x.to === a.id && (openStates.has(x.state) || x.state === "blocked"));
  return [foreign(a.room ? roomOf(a.id) : a.id, { class: "words title" }), facts([
    ["id", a.room ? code(a.id) : ""], ["name", !a.room && a.name && a.name !== a.id ? a.name : ""],
    ["state", el("span", { class: "with-glyph" }, glyph(stateOf(a, store)), foreign(underLine(a, store, now)))],
    ["role", roleOf(a.role)], ["home", a.node], ["wakes", store.past ? "" : wayOf(a.wakes) || t("wakes_unknown")], ["unread", store.past ? "" : count(a.unread)],
    ["attached", adaptersOf(a.attached)], ["since", a.since ? timeNode(a.since, now) : ""]]),
  el("p", { class: "acts" },
    store.past || a.room ? "" : button("write", "write_to", () => does({ name: "write-to", to: a.id, kind: "prompt" })),
    store.past || a.room ? "" : button("delegate", "delegate_task", () => does({ name: "write-to", to: a.id, kind: "delegate" })),
    button("filter", "show_messages", () => select({ agent: a.id }))),
  ...handOver(a, store, panel),
  el("h3", {}, t("agent_tasks")),
  tasks.length ? el("ol", { class: "links" }, ...tasks.map((x) => el("li", {}, glyph(taskGlyph[x.state]), el("button", { type: "button", class: "link-button", on: { click: () => go("t", x.id) } }, foreign(x.title)), el("span", { class: "id" }, x.short))))
    : el("p", { class: "quiet" }, t("agent_no_tasks"))];
}

function nodeBody(p, store, now, panel) {
  const own = p.self ? store.status : null;
  if (panel.historyOf !== p.peer && !store.past) {
    panel.historyOf = p.peer;
    panel.history = null;
    ask("health").then((got) => { panel.history = got; panel.draw(panel.store, panel.now); }).catch(() => {}); // without it the charts are left out
  }
  const out = [foreign(p.name, { class: "words title" }), facts([
    ["id", code(p.peer)], ["role", roleOf(p.role)], ["link", store.past ? "" : linkOf(p, store)], ["addr", code(p.addr)], ["gossip", p.self || store.past ? "" : aliveOf(p.alive)],
    ["seen", !p.self && !p.linked && !store.past ? (p.lastSeen ? t("as_of", { time: age(now - p.lastSeen) }) : t("as_of_unknown")) : ""],
    ["behind", p.self || store.past ? "" : count(p.behind)], ["until", p.until ? timeNode(p.until, now) : ""], ["revoked", p.revoked ? t("f_yes") : ""],
    ["version", p.version || (store.past ? "" : own?.version)], ["board", code(p.board || (store.past ? "" : own?.board))]])];
  if (panel.history && !store.past) out.push(...charts(p, panel.history));
  const agents = store.agents.filter((a) => a.home === p.peer);
  if (agents.length) out.push(el("h3", {}, t("agents")), el("ol", { class: "links" }, ...agents.slice(0, 50).map((a) => el("li", {}, glyph(stateOf(a, store)), el("button", { type: "button", class: "link-button", on: { click: () => go("a", a.id) } }, foreign(a.id))))));
  if (!p.self && !p.revoked && !store.past) {
    out.push(panel.sure ? sureNode(t("revoke_sure", { node: p.name }), "revoke_yes", "revoke_no", () => panel.does("members/" + encodeURIComponent(p.peer) + "/revoke", { reason: "" }, () => t("revoked_done", { node: p.name })), panel)
      : el("p", { class: "acts" }, button("renew", "renew_member", () => panel.does("members/" + encodeURIComponent(p.peer) + "/renew", {}, () => t("renewed_done", { node: p.name }))), button("begin", "revoke_member", () => panel.askSure("revoke"))));
  }
  return out;
}

function charts(p, history) {
  const s = history.samples;
  if (s.length < 2) return [el("h3", {}, t("health")), el("p", { class: "quiet" }, t("no_history"))];
  const of = (f) => s.map(f);
  if (!p.self) {
    const trips = of((x) => x.links?.[p.peer]);
    return trips.some((x) => x !== undefined) ? [el("h3", {}, covered(history)), spark(t("chart_trip"), s, trips, rtt)] : [];
  }
  return [el("h3", {}, covered(history)), healthCharts(history)];
}

export const bodies = { t: taskBody, m: messageBody, a: agentBody, n: nodeBody };
