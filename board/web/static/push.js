// Web push: the node tells this browser, through the push service of the browser's maker, that something waits while no
// page of the board is in sight. Off until asked for, over with the session; the note holds counts, and no words of anybody.
import { attr, el, foreign } from "./dom.js";
import { ask, Refused } from "./feed.js";
import { keep, kept } from "./kept.js";
import { noOf } from "./refusals.js";
import { t } from "./strings.js";

const every = 30e3; // how often a page in sight says so
const patience = 15e3; // for the service worker

export const wordsOf = { cache: "aster.words", at: "/push-words" }; // where sw.js finds its sentences

// state says what can be done here: insecure, missing and refused are why nothing can.
export function state() {
  if (!isSecureContext) return "insecure";
  if (!navigator.serviceWorker || !("PushManager" in globalThis) || !("Notification" in globalThis)) return "missing";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && kept("push") === "on" ? "on" : "off";
}

const says = (path, body, more = {}) => ask("/api/push/" + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), ...more });

const bytesOf = (base64url) => Uint8Array.from(atob(base64url.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const same = (a, b) => Boolean(a) && a.byteLength === b.length && new Uint8Array(a).every((x, i) => x === b[i]);

const worker = () => Promise.race([navigator.serviceWorker.ready, new Promise((_, no) => { setTimeout(() => no(new Error(t("push_no_worker"))), patience); })]);

// subscribe has the node know this browser; a subscription for another key of the node is made anew.
async function subscribe() {
  const key = bytesOf((await ask("/api/push/vapid-public-key")).publicKey);
  const { pushManager } = await worker();
  let sub = await pushManager.getSubscription();
  if (sub && !same(sub.options.applicationServerKey, key)) {
    await sub.unsubscribe();
    sub = null;
  }
  sub ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const words = { some: t("push_some", { n: "{n}" }), one: t("push_one"), main: t("notify_main"), other: t("push_other") };
  await (await caches.open(wordsOf.cache)).put(wordsOf.at, new Response(JSON.stringify(words), { headers: { "Content-Type": "application/json" } }));
  await says("subscribe", { ...sub.toJSON(), quietUntil: Number(kept("snooze")) || 0 });
}

// on is called by a click only. It throws what stood in the way.
async function on() {
  if ((await Notification.requestPermission()) !== "granted") throw new Error(t(Notification.permission === "denied" ? "push_was_refused" : "push_dismissed"));
  await subscribe();
  keep("push", "on");
}

// off ends it here first: a node that does not hear of it is told so by the push service.
async function off() {
  keep("push", null);
  const sub = await (await worker()).pushManager.getSubscription();
  await sub?.unsubscribe();
  await says("unsubscribe", { endpoint: sub?.endpoint ?? "" });
}

// again is for a page that was opened anew: its session may be another, and the browser's address too.
export async function again() {
  if (state() !== "on") return;
  try {
    await subscribe();
    failed = "";
  } catch (err) {
    failed = reasonOf(err);
  }
}
let failed = "";

// quiet passes on that its person wants none for a while; 0: again from now on.
export const quiet = () => again();

function reasonOf(err) {
  if (err instanceof Refused) return t("push_not_on", noOf(err));
  if (err instanceof TypeError) return t("push_not_on", { reason: t("no_answer"), hint: "" });
  if (err instanceof DOMException) return t("push_not_on", { reason: t("push_no_service", { what: err.message }), hint: "" });
  return err.message;
}

// pushSwitch is the control of Settings, and the words beside it; its draw follows what the browser allows now.
export function pushSwitch(toast) {
  const box = el("input", { type: "checkbox", "aria-describedby": "push-about", on: { change: () => change() } });
  const about = el("p", { class: "quiet", id: "push-about", role: "status" });
  const draw = (words = "", busy = false) => {
    const now = state();
    box.disabled = busy || !["on", "off"].includes(now);
    if (!busy) box.checked = now === "on";
    attr(about, "data-tone", words && !busy ? "bad" : null);
    about.replaceChildren(foreign(words || (now === "on" && failed) || t("push_" + now)));
  };
  const change = async () => {
    const wanted = box.checked;
    draw(t("push_busy"), true);
    try {
      await (wanted ? on() : off());
      failed = "";
      draw();
      toast(t(wanted ? "push_now_on" : "push_now_off"));
    } catch (err) {
      draw(wanted ? reasonOf(err) : "");
    }
  };
  navigator.permissions?.query({ name: "notifications" }).then((p) => p.addEventListener("change", () => draw())).catch(() => {}); // else the next visit shows it
  draw();
  return { nodes: [el("label", { class: "switch" }, box, " ", t("push_me")), about], draw };
}

const pageName = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
let inSight = false, said = 0;

// attend lets the node know while this page is in sight: then its person needs no note.
export function attend(store, now) {
  const visible = !document.hidden && store.connected;
  if (visible === inSight && (!visible || now - said < every)) return;
  inSight = visible;
  said = now;
  if (store.connected) says("seen", { page: pageName, visible }, { keepalive: true }).catch(() => {}); // it runs out by itself
}
