// The locked page works without this; here it gets its language and a copy button.
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
