// The page: one store, one feed, one clock, and the parts that draw.
import { Feed } from "./feed.js";
import { Store } from "./store.js";
import { language, t } from "./strings.js";
import { listen } from "./keys.js";
import "./agents.js";
import "./work.js";
import "./stream.js";
import "./composer.js";
import "./panel.js";
import "./frame.js";

document.documentElement.lang = language;

const clock = () => Date.now();
const store = new Store();
const feed = new Feed(store, clock);
const part = (name) => document.querySelector("as-" + name);
const parts = {
  top: part("top"), banner: part("banner"), agents: part("agents"), work: part("work"), stream: part("stream"),
  composer: part("composer"), panel: part("panel"), foot: part("foot"), tabs: part("tabs"), help: part("help"),
};

// Which parts draw when something changed; what shows durations draws each second too.
const draws = {
  status: ["top", "banner", "foot", "composer", "work", "stream"],
  agents: ["agents", "composer", "panel", "work", "stream"],
  tasks: ["work", "panel"],
  messages: ["stream", "panel"],
  second: ["top", "banner", "agents", "work", "composer", "panel"],
};

const dated = new Set(["agents", "work", "panel"]);

function draw(reasons) {
  document.body.classList.toggle("loaded", store.loaded);
  document.body.dataset.health = store.health(clock());
  if (!store.loaded) return;
  const now = clock();
  // Durations are told by the node's clock, and stop where knowledge stops.
  const known = (store.health(now) === "silent" ? store.lastBeat : now) + store.skew;
  for (const name of new Set([...reasons].flatMap((r) => draws[r]))) parts[name].draw(store, dated.has(name) ? known : now);
}
store.listeners.add(draw);
addEventListener("redraw", () => store.changed("agents", "tasks", "messages", "status"));

let second = 0;
function tick() {
  clearInterval(second);
  if (document.hidden) return;
  draw(["second"]);
  second = setInterval(() => draw(["second"]), 1000);
}
document.addEventListener("visibilitychange", tick);

// After 300 ms of nothing the page says that it loads; before that a word would only flash.
setTimeout(() => {
  if (!store.loaded) document.body.dataset.loading = t("loading");
}, 300);

function act(name) {
  const toggle = (cls) => {
    document.body.classList.toggle(cls);
    if (document.body.classList.contains(cls)) document.getElementById(cls.slice(5)).focus();
  };
  switch (name) {
    case "keys": return parts.help.show();
    case "delegate":
    case "prompt":
      parts.tabs.choose("messages");
      document.body.classList.add("show-messages");
      return parts.composer.focusFor(name === "delegate" ? "delegate" : "prompt");
    case "agents": return toggle("show-agents");
    case "messages": return toggle("show-messages");
    case "copy": return parts.panel.shown && navigator.clipboard && parts.panel.copyLink();
    case "cancel": return parts.panel.shown && parts.panel.kind === "t" && parts.panel.askCancel(true);
    case "close":
      if (parts.panel.shown) return parts.panel.close();
      document.body.classList.remove("show-agents", "show-messages");
      if (document.activeElement?.matches("textarea, select, input")) document.activeElement.blur();
  }
}
addEventListener("act", (e) => act(e.detail));
listen(act);

parts.panel.follow(false);
tick();
feed.start();
