// The shell of the page for when its node does not answer. The node is always asked first: a page is never older than it.
const name = "aster";
const shell = (url) => url.origin === location.origin && (url.pathname.startsWith("/static/") || !/^\/(api|ws|open|join|healthz|readyz|sw\.js)/.test(url.pathname));

addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(clients.claim()));
addEventListener("fetch", (e) => {
  const url = new URL(e.request.url);
  if (e.request.method !== "GET" || !shell(url)) return;
  const page = !url.pathname.startsWith("/static/");
  const key = page ? "/" : url.pathname;
  e.respondWith((async () => {
    try {
      const answer = await fetch(e.request);
      const kept = answer.ok && !answer.redirected && answer.type === "basic" ? answer.clone() : null;
      if (kept) e.waitUntil(caches.open(name).then((c) => c.put(key, kept)));
      if (answer.status === 401 && page) e.waitUntil(caches.delete(name));
      return answer;
    } catch (err) {
      const old = await caches.match(key);
      if (old) return old;
      throw err;
    }
  })());
});

// A push says how much waits, and nothing else. Its sentences are the page's, which left them where only this looks.
addEventListener("push", (e) => e.waitUntil(tell(e.data)));

async function tell(data) {
  const [note, words, pages] = await Promise.all([noteOf(data), sentences(), clients.matchAll({ type: "window" })]);
  if (pages.some((c) => c.visibilityState === "visible")) return;
  const main = note.noMain > 0 ? words.main : "";
  const waits = note.waiting === 1 ? words.one : note.waiting > 1 ? words.some.replace("{n}", String(note.waiting)) : "";
  await registration.showNotification(waits || main || words.other, { body: waits && main, tag: "aster.push", icon: "/static/icon.svg", silent: true });
}

async function noteOf(data) {
  try {
    const note = data ? data.json() : await (await fetch("/api/push/latest")).json();
    return { waiting: Number(note.waiting) || 0, noMain: Number(note.noMain) || 0 };
  } catch {
    return { waiting: 0, noMain: 0 };
  }
}

async function sentences() {
  const kept = await caches.match("/push-words", { cacheName: "aster.words" }).catch(() => null);
  return kept ? kept.json() : { some: "aster: {n}", one: "aster: 1", main: "aster", other: "aster" };
}

addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil((async () => {
    const [page] = await clients.matchAll({ type: "window" });
    return page ? page.focus() : clients.openWindow("/");
  })());
});
