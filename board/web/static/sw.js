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
