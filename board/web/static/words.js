// Values as people read them. now is always given: nothing here looks at a clock.
import { language, t } from "./strings.js";
import { el, foreign } from "./dom.js";

const units = language === "ko" ? { s: "초", min: "분", h: "시간", d: "일" } : { s: " s", min: " min", h: " h", d: " d" };
const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const short = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dated = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long" });
const counts = new Intl.NumberFormat(language);

export const count = (n) => counts.format(n ?? 0);

export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (ms > 0 && ms < 1000) return Math.max(1, Math.round(ms)) + " ms";
  if (s < 10 && ms % 1000 !== 0) return (Math.floor(s * 10) / 10).toFixed(1) + units.s;
  if (s < 60) return Math.floor(s) + units.s;
  if (s < 3600) return Math.floor(s / 60) + units.min + (s < 600 && s % 60 >= 1 ? " " + Math.floor(s % 60) + units.s : "");
  if (s < 86400) return Math.floor(s / 3600) + units.h + (s < 36000 && s % 3600 >= 60 ? " " + Math.floor((s % 3600) / 60) + units.min : "");
  return Math.floor(s / 86400) + units.d;
}

// age is what somebody glances at: whole seconds below a minute, whole minutes after, so that little moves.
export function age(ms) {
  const s = Math.floor(Math.max(0, ms) / 1000);
  return duration((s < 60 ? s : s - (s % 60)) * 1000);
}

// ago says in one unit how long ago something was.
export function ago(ms) {
  const step = [86400e3, 3600e3].find((x) => ms >= x) ?? 1;
  return t("ago", { time: age(ms - (ms % step)) });
}

export const timeOfDay = (ms) => short.format(ms);

export function timeNode(ms, now, doubt = false) {
  if (!ms) return el("time", {}, "–");
  const sameDay = new Date(ms).toDateString() === new Date(now).toDateString();
  const shown = (doubt ? "~" : "") + (sameDay ? clock.format(ms) : dated.format(ms));
  return el("time", { datetime: new Date(ms).toISOString(), title: exact.format(ms) + (doubt ? " (" + t("doubt") + ")" : "") }, shown);
}

// bytes in the steps of 1,024 that the command line prints too.
export function bytes(n) {
  const steps = ["B", "KiB", "MiB", "GiB", "TiB"];
  let v = Math.max(0, n), i = 0;
  while (v >= 1024 && i < steps.length - 1) { v /= 1024; i++; }
  return (v < 10 && i > 0 ? v.toFixed(1).replace(/\.0$/, "") : Math.round(v)) + " " + steps[i];
}

// countdown is what is left of a clock: minutes and seconds while they matter.
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  if (s < 600) return Math.floor(s / 60) + ":" + String(s % 60).padStart(2, "0");
  return duration(Math.floor(s / 60) * 60e3);
}

// momentTime names a past moment to the second.
const moment = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
export const momentTime = (ms) => moment.format(ms);

export const exactTime = (ms) => dated.format(ms);

export const rtt = (micros) => (micros < 10000 ? (micros / 1000).toFixed(1) : Math.round(micros / 1000)) + " ms";

export const taskID = (task) => task.short;
export const messageID = (m) => m.short;

// wayOf says how mail reaches an agent. The node's own words for it are in this page's language, others as they are.
const ways = new Map([["its socket", "way_socket"], ["its runner", "way_runner"], ["its inbox file", "way_file"], ["its own board", "way_board"], ["it reads its inbox", "way_reads"], ["nothing: it reads its inbox", "way_nothing"]]);
export const wayOf = (how) => (ways.has(how) ? t(ways.get(how)) : how);

// roleOf is a role in this page's language. Roles are few and known; another one is shown as it is called.
const roles = new Set(["main", "local", "upstream", "collab", "peer", "board"]);
export const roleOf = (role) => (roles.has(role) ? t("role_" + role) : role ?? "");

// adaptersOf says by which ways an agent is attached.
const adapters = new Set(["ws", "files", "cli", "worker"]);
export const adaptersOf = (list) => (list ?? []).map((name) => (adapters.has(name) ? t("by_" + name) : name)).join(", ");
const gossips = new Set(["alive", "suspect", "dead", "unknown"]);
export const aliveOf = (word) => (gossips.has(word) ? t("gossip_" + word) : word ?? "");

// senderOf and targetOf name the ends of a message; a name that an agent gave itself never stands for its id.
export function senderOf(m) {
  const e = m.envelope;
  if (e.from) return topics.has(e.from) ? foreign(roomOf(e.from), { class: "name", title: e.from }) : foreign(e.from, { class: "name" });
  const node = m.nodeName || m.node?.slice(-6) || "";
  return foreign(t(e.source === "server" ? "node_speaks" : "person", { node }), { class: "name" });
}

export function targetOf(m) {
  const e = m.envelope;
  if (e.room) return foreign(roomOf(e.room), { class: "name", title: e.room });
  if (e.to) return foreign(e.to, { class: "name" });
  return el("span", { class: "name" }, t("everybody"));
}

// roomOf is what a room is about, as far as that is known (store.js tells it), behind a mark that no agent's id begins with.
export const topics = new Map();
export const roomOf = (id) => "#" + (topics.get(id) || id);

// noMain says since when nobody is main here, and whether these nodes can elect one; "" while somebody is. A link that only
// changes is no news: the first seconds say nothing.
export function noMain(s, now) {
  const m = s.main;
  if (!m.peer) return t("no_main");
  if (m.ended && !m.lost) return t("main_ended", { node: m.node ?? "" });
  if (!m.lost || now - m.lost < 3000 || !m.voters?.length) return "";
  const counts = { time: timeOfDay(m.lost), here: count(m.reach ?? 0), of: count(m.voters.length) };
  return t((m.reach ?? 0) * 2 > m.voters.length ? "no_main_electing" : "no_main_stuck", counts);
}

// warningOf are the words of a warning: a node says it in English, with all that belongs to it. Where the page speaks otherwise it
// has its own words for what it is about, and the node's beside them.
export function warningOf(kind, said) {
  if (language === "en" || !kind) return [said, ""];
  const about = "warn_" + (kind.startsWith("board/") ? "elsewhere" : kind.split("/")[0].replaceAll("-", "_"));
  return t(about) === about ? [said, ""] : [t(about), said];
}

// hint makes a refusal's second sentence; commands come without a full stop.
export const sentence = (s) => (s ? (/[.!?]$/.test(s) ? s : s + ".") : "");
