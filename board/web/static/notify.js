// Notifications, off until asked for (BOARD 7): what interrupts is a risk, the last half of a clock, a blocked task that
// was begun here, and no main for half a minute. One tab speaks for all. They hold names and clocks, no words of others.
// Where the node tells by web push (push.js), pages do not tell as well.
import { plain } from "./dom.js";
import { countdown } from "./words.js";
import { mine } from "./needs.js";
import { keep, kept } from "./kept.js";
import { state } from "./push.js";
import { t } from "./strings.js";

const settle = 5000; // answered meanwhile: nobody is told
const merge = 60e3; // of one kind
const anHour = 6; // but for clocks

export const can = () => isSecureContext && "Notification" in globalThis;
export const wanted = () => can() && Notification.permission === "granted" && kept("notify") === "on";

// ask is called by a click only.
export async function ask() {
  if (!can()) return false;
  const answer = await Notification.requestPermission();
  keep("notify", answer === "granted" ? "on" : null);
  return answer === "granted";
}

export const off = () => keep("notify", null);
export const snooze = (now) => keep("snooze", String(now + 3600e3));

export class Notifier {
  constructor(store) {
    this.store = store;
    this.waiting = new Map(); // ask id → since when it interrupts
    this.told = new Set();
    this.kinds = new Map(); // kind → last told
    this.hour = [];
    this.leads = !navigator.locks;
    navigator.locks?.request("aster.notify", () => new Promise(() => { this.leads = true; })).catch(() => {}); // held as long as the tab lives
  }

  interrupts(a, now) {
    if (!mine(a, this.store, now)) return false;
    if (a.kind === "approval" || a.kind === "blocked") return true;
    return Boolean(a.until && a.kind !== "key" && now >= a.at + (a.until - a.at) / 2);
  }

  look(now) {
    if (!wanted() || state() === "on" || !this.leads || Number(kept("snooze")) > now) return;
    const due = this.store.asks.filter((a) => this.interrupts(a, now) && !this.store.setAside.has(a.id));
    if (this.noMain(now)) due.push({ id: "main", kind: "main" });
    const ids = new Set(due.map((a) => a.id));
    for (const id of this.waiting.keys()) if (!ids.has(id)) this.waiting.delete(id);
    for (const a of due) {
      if (this.told.has(a.id)) continue;
      if (!this.waiting.has(a.id)) {
        this.waiting.set(a.id, now);
        setTimeout(() => this.look(Date.now()), settle + 50);
      } else if (now - this.waiting.get(a.id) >= settle && document.hidden) this.tell(a, now);
    }
  }

  noMain(now) {
    const main = this.store.status?.main;
    if (main?.peer && !main.lost) this.mainGone = 0;
    else this.mainGone ||= now;
    return Boolean(this.mainGone && now - this.mainGone > 30e3);
  }

  tell(a, now) {
    this.hour = this.hour.filter((at) => now - at < 3600e3);
    const clock = a.until && a.kind !== "key";
    if (!clock && (this.hour.length >= anHour || now - (this.kinds.get(a.kind) ?? 0) < merge)) return;
    this.told.add(a.id);
    this.hour.push(now);
    this.kinds.set(a.kind, now);
    const words = [a.asker, a.taskShort, clock ? t("left", { time: countdown(a.until - now) }) : ""].filter(Boolean).join(" · ");
    const note = new Notification(t("notify_" + a.kind), { body: plain(words), tag: "aster." + a.kind, icon: "/static/icon.svg", silent: true });
    note.addEventListener("click", () => { focus(); note.close(); });
  }
}
