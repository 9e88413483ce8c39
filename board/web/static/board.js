// The page: one store, one feed, one clock, and the parts that draw.
import { Feed } from "./feed.js";
import { Store } from "./store.js";
import { language, t } from "./strings.js";
import { listen } from "./keys.js";
import { begin, leave, select, show, travel, where } from "./route.js";
import { leavePlace, takePlace } from "./place.js";
import { forget, recall, remember, work } from "./offline.js";
import { Notifier } from "./notify.js";
import { again, attend } from "./push.js";
import { Past } from "./replay.js";
import { waitingFor } from "./needs.js";
import { toast } from "./toast.js";
import "./agents.js";
import "./needs.js";
import "./work.js";
import "./stream.js";
import "./composer.js";
import "./panel.js";
import "./mesh.js";
import "./agenda.js";
import "./settings.js";
import "./palette.js";
import "./toast.js";
import "./frame.js";

document.documentElement.lang = language;

const clock = () => Date.now();
const store = new Store();
const feed = new Feed(store, clock);
/** @type {(name: string) => any} */
const part = (name) => document.querySelector("as-" + name);
const parts = {
  top: part("top"), banner: part("banner"), agents: part("agents"), needs: part("needs"), work: part("work"), stream: part("stream"),
  composer: part("composer"), panel: part("panel"), foot: part("foot"), tabs: part("tabs"), help: part("help"), mesh: part("mesh"), agenda: part("agenda"), settings: part("settings"), replay: part("replay"),
};
const past = new Past(store);
const notifier = new Notifier(store);

// Which parts draw when something changed; what shows durations draws each second too. Needs you comes before the top,
// which counts it.
const draws = {
  status: ["needs", "top", "banner", "replay", "foot", "composer", "stream", "mesh", "agenda", "settings"],
  agents: ["needs", "top", "agents", "composer", "panel", "work", "stream", "mesh"],
  tasks: ["work", "panel"],
  messages: ["stream", "panel"],
  asks: ["needs", "top"],
  second: ["needs", "top", "banner", "agents", "work", "composer", "panel"],
};
const dated = new Set(["agents", "work", "panel", "needs", "mesh"]);
const ofThePast = new Set(["agents", "work", "panel", "needs", "stream"]);

// known is the node's clock, and stops where knowledge stops.
function known() {
  const now = clock();
  return (store.health(now) === "silent" ? store.lastBeat : now) + store.skew;
}

function draw(reasons) {
  document.body.classList.toggle("loaded", store.loaded || Boolean(store.asOf));
  document.body.classList.toggle("old", Boolean(store.asOf));
  document.body.dataset.health = store.health(clock());
  store.off = document.body.dataset.health === "silent";
  document.body.dataset.feed = store.connected ? "open" : "closed";
  if (!store.loaded && !store.asOf) return;
  const now = clock();
  const back = past.at && past.moment ? past.store : null;
  document.body.classList.toggle("past", past.at > 0);
  document.body.classList.toggle("past-wait", past.at > 0 && !back);
  parts.composer.hidden = past.at > 0;
  if (reasons.has("messages")) for (const [m, added] of store.came.splice(0)) if (!past.at) parts.stream.came(m, added);
  store.reading = !past.at && (!parts.stream.vlist.atEnd || parts.stream.held());
  if (past.at) store.waiting = waitingFor(store, known());
  for (const name of new Set([...reasons].flatMap((r) => draws[r]))) {
    if (document.hidden && name !== "needs" && name !== "top") continue;
    if (past.at && ofThePast.has(name)) {
      if (back && !(reasons.size === 1 && reasons.has("second"))) parts[name].draw(back, back.past);
    } else if (name === "replay") parts.replay.draw(past);
    else if (name === "top") parts.top.draw(store, now, back);
    else if (name === "stream" && !reasons.has("messages")) parts.stream.beat(store, now);
    else parts[name].draw(store, dated.has(name) ? known() : now);
  }
  parts.stream.drawLast(known());
  attend(store, now);
  if (store.loaded && !placed) {
    placed = true;
    if (past.at && past.moment) past.take(past.moment); // it came before the node said who it is
    requestAnimationFrame(() => takePlace(parts.stream)); // once its rows have their heights
  }
  if (reasons.has("asks") || reasons.has("status")) notifier.look(clock());
  if (reasons.has("status") && store.loaded && store.connected) remember(store, now);
}
store.listeners.add(draw);
addEventListener("redraw", () => store.changed("agents", "tasks", "messages", "status", "asks"));

let second = 0;
let placed = false;
let hiddenAt = 0;
function tick() {
  clearInterval(second);
  attend(store, clock());
  if (document.hidden) {
    hiddenAt = clock();
    return;
  }
  if (hiddenAt && clock() - hiddenAt > 10 * 60e3) sinceLooked(hiddenAt);
  hiddenAt = 0;
  draw(new Set(["second", "messages"]));
  second = setInterval(() => draw(new Set(["second"])), 1000);
}
document.addEventListener("visibilitychange", tick);

// sinceLooked says what happened while nobody looked (BOARD 5).
function sinceLooked(then) {
  const ended = [...store.tasks.values()].filter((x) => x.ended > then);
  const n = (...states) => ended.filter((x) => states.includes(x.state)).length;
  const parts_ = [];
  if (n("done")) parts_.push(t("looked_done", { n: n("done") }));
  if (n("failed", "interrupted", "refused")) parts_.push(t("looked_failed", { n: n("failed", "interrupted", "refused") }));
  const asks = store.asks.filter((a) => a.at > then).length;
  if (asks) parts_.push(t("looked_asks", { n: asks }));
  store.sinceLooked = parts_.length ? t("since_looked", { time: new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(then), what: parts_.join(", ") }) : "";
  store.changed("status");
}

// After 300 ms of nothing the page says that it loads, or shows what it knew; before that a word would only flash.
setTimeout(() => {
  if (store.loaded) return;
  const old = recall();
  if (old) store.old(old);
  else document.body.dataset.loading = t("loading");
}, 300);

let shown = "";
function routed() {
  const { view, filter, since, at } = where();
  document.getElementById("middle").hidden = view !== "board";
  document.getElementById("view").hidden = view === "board";
  parts.mesh.hidden = view !== "mesh";
  parts.agenda.hidden = view !== "agenda";
  parts.settings.hidden = view !== "settings";
  document.body.dataset.view = view;
  parts.tabs.follow(view);
  if (view === "settings") parts.settings.load();
  past.follow(at, filter, since);
  const key = JSON.stringify([filter, since]);
  if (key !== shown && !at) { // the live window waits while somebody looks back
    shown = key;
    const plain = !since && Object.keys(filter).length === 0;
    if (!plain || feed.opened) store.window.open(filter, since);
  }
  store.changed("status", "agents", "tasks", "messages", "asks");
}
begin(routed);

const noAct = () => toast(t("past_no_act"));

function compose(kind, to = "", re = null) {
  if (past.at) return noAct();
  if (where().view !== "board" && innerWidth < 720) show("board");
  parts.tabs.choose("messages");
  document.body.classList.add("show-messages");
  if (parts.panel.shown && innerWidth < 1920) leave();
  if (to) parts.composer.choose(to);
  parts.composer.answer(re);
  parts.composer.focusFor(kind);
}

function toggle(cls) {
  document.body.classList.toggle(cls);
  if (document.body.classList.contains(cls)) document.getElementById(cls.slice(5)).focus();
}

// replyTo finds what the focus or the open details are about, and answers it.
function reply() {
  const row = /** @type {HTMLElement} */ (document.activeElement?.closest(".message"));
  if (past.at) return noAct();
  const found = row && store.window.items.find((m) => "m" + m.pos === row.dataset.key);
  if (found?.envelope.from) return compose("prompt", found.envelope.from, { id: found.envelope.id, short: found.short });
  /** @type {HTMLElement} */ (document.querySelector("as-panel [data-act=reply]"))?.click();
}

// why shows the record behind the focused row: its details, with the record opened.
function why() {
  if (parts.panel.shown) return parts.panel.records();
  const row = /** @type {HTMLElement} */ (document.activeElement?.closest("[data-row]"));
  if (!row) return;
  row.click();
  if (parts.panel.shown) parts.panel.records();
}

const acts = {
  keys: () => parts.help.show(),
  palette: () => part("palette").show(past.at && past.moment ? past.store : store, act, known()),
  actions: () => part("palette").show(past.at && past.moment ? past.store : store, act, known()),
  search() {
    parts.tabs.choose("messages");
    document.body.classList.add("show-messages");
    if (parts.panel.shown && innerWidth < 1920) leave();
    part("search").focusWords();
  },
  time() {
    if (!past.at) travel(Date.now() + store.skew);
    parts.replay.draw(past); // what is hidden takes no focus
    parts.replay.slider.focus();
  },
  earlier: () => past.at && past.step(-1),
  later: () => past.at && past.step(1),
  refuse: noAct,
  live() {
    if (past.at) return travel(0);
    select({}, 0);
    parts.stream.toEnd();
  },
  delegate: () => compose("delegate"),
  prompt: () => compose("prompt"),
  reply, why,
  next() {
    if (where().view !== "board") show("board");
    parts.needs.next();
  },
  board: () => show("board"), agenda: () => show("agenda"), mesh: () => show("mesh"), settings: () => show("settings"),
  agents: () => toggle("show-agents"),
  messages: () => toggle("show-messages"),
  copy: () => parts.panel.shown && navigator.clipboard && parts.panel.copyLink(),
  cancel: () => parts.panel.shown && parts.panel.kind === "t" && (past.at ? noAct() : parts.panel.askCancel()),
  close() {
    if (parts.panel.shown) return parts.panel.close();
    document.body.classList.remove("show-agents", "show-messages");
    const field = /** @type {HTMLElement} */ (document.activeElement);
    if (field?.matches("textarea, select, input")) field.blur();
    else if (where().view !== "board") show("board");
  },
};

function act(what) {
  if (typeof what === "string") return acts[what]?.();
  if (what.name === "reply-to") return compose("prompt", what.to, { id: what.re, short: what.short });
  if (what.name === "write-to") return compose(what.kind, what.to);
}
addEventListener("act", (/** @type {any} */ e) => act(e.detail));
listen(act);

store.documentChanged = () => parts.agenda.changed();
feed.gone = forget;
parts.panel.follow(false);
leavePlace(parts.stream);
routed();
tick();
feed.start().then(again);
work();
