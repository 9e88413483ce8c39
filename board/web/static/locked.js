// The locked page works without this; here it gets its language, a copy button and, where people have accounts, a login.
import { t, language } from "./strings.js";

document.documentElement.lang = language;
document.querySelector("h1").textContent = t(document.body.dataset.why === "used" ? "link_used" : "locked");
const copy = document.getElementById("copy");
if (navigator.clipboard) {
  copy.hidden = false;
  copy.textContent = t("copy_command");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText("aster board");
    document.getElementById("said").textContent = t("copied");
  });
}

const said = document.getElementById("said");
const login = /** @type {any} */ (document.getElementById("login"));

async function offerLogin() {
  const who = await (await fetch("/api/whoami")).json();
  if (!who.loginRequired) return;
  document.getElementById("account").textContent = t("account");
  document.getElementById("password").textContent = t("password");
  login.querySelector("button").textContent = t("sign_in");
  login.hidden = false;
}

login?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ id: login.elements.id.value, password: login.elements.password.value });
  const answer = await fetch("/api/login", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (answer.ok) {
    location.reload();
    return;
  }
  login.elements.password.value = "";
  said.textContent = t(answer.status === 429 ? "login_locked" : "login_wrong");
});
if (login) offerLogin().catch(() => {});
