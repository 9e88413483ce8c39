// Files on their way into a message: each goes to the node at once, and the message names it by its hash.
import { attr, el, foreign, text } from "./dom.js";
import { Refused } from "./feed.js";
import { showWhy, whyNot } from "./refusals.js";
import { bytes } from "./words.js";
import { t } from "./strings.js";

const most = 64 << 20; // bytes of one attachment
const many = 16; // files of one message

export class Attaching extends HTMLElement {
  connectedCallback() {
    if (this.list) return;
    this.items = []; // { name, bytes, ref, request, failed }
    this.pick = el("input", { type: "file", multiple: true, hidden: true, on: { change: () => { this.add(this.pick.files); this.pick.value = ""; } } });
    this.list = el("ol", { class: "attaching", "aria-label": t("f_attachments") });
    this.said = el("p", { class: "said", role: "status", "data-tone": "bad" });
    this.append(this.pick, this.list, this.said);
  }

  get waits() {
    return (this.items ?? []).some((x) => !x.ref);
  }

  get refs() {
    return (this.items ?? []).map((x) => x.ref).filter(Boolean);
  }

  // restore shows what an earlier page had attached: the node keeps it for a day.
  restore(refs) {
    for (const ref of refs ?? []) this.show({ name: ref.name, bytes: ref.bytes, ref });
  }

  clear() {
    this.items = [];
    this.list.replaceChildren();
    text(this.said, "");
  }

  add(files) {
    text(this.said, "");
    const refused = [];
    for (const file of files) {
      if (file.size > most) refused.push(t("attach_large", { name: file.name, size: bytes(file.size), most: bytes(most) }));
      else if (this.items.length >= many) refused.push(t("attach_many", { name: file.name, n: many }));
      else this.put(file);
    }
    if (refused.length) showWhy(this.said, { words: refused.join(" "), own: "" });
    this.changed();
  }

  changed() {
    this.dispatchEvent(new CustomEvent("attached"));
  }

  show(x) {
    x.bar = el("progress", { max: 100, value: 0, "aria-label": t("attach_progress", { name: x.name }), hidden: Boolean(x.ref) });
    x.row = el("li", {}, foreign(x.name, { class: "name", dir: "ltr" }), el("span", { class: "quiet" }, bytes(x.bytes)), x.bar,
      el("button", { type: "button", "aria-label": t("attach_remove", { name: x.name }), title: t("attach_remove", { name: x.name }), on: { click: () => this.remove(x) } }, "×"));
    this.items.push(x);
    this.list.append(x.row);
    return x;
  }

  remove(x) {
    x.request?.abort();
    this.items = this.items.filter((y) => y !== x);
    x.row.remove();
    this.changed();
  }

  async put(file) {
    const x = this.show({ name: file.name || t("attach_pasted"), bytes: file.size });
    try {
      const raw = await file.arrayBuffer();
      const hash = await sum(raw);
      const about = new URLSearchParams({ name: x.name, mime: file.type });
      x.ref = await this.upload(x, "/api/v1/blobs" + (hash ? "/" + hash : "") + "?" + about, raw);
      x.bar.hidden = true;
    } catch (err) {
      if (!this.items.includes(x)) return; // taken away meanwhile
      this.items = this.items.filter((y) => y !== x);
      x.row.remove();
      const silent = t("attach_failed", { name: x.name, reason: t("no_answer"), hint: "" }).trim();
      showWhy(this.said, whyNot(err, "attach_failed", silent, { name: x.name }));
    }
    this.changed();
  }

  // upload is a request of the older kind: only those tell how far they are.
  upload(x, path, raw) {
    return new Promise((done, failed) => {
      const r = x.request = new XMLHttpRequest();
      r.upload.addEventListener("progress", (e) => attr(x.bar, "value", Math.round((100 * e.loaded) / (e.total || 1))));
      r.addEventListener("load", () => {
        let answer = {};
        try { answer = JSON.parse(r.responseText); } catch { /* no words came with it */ }
        if (r.status === 200) done(answer);
        else failed(new Refused(answer.error ?? { code: "internal", reason: "HTTP " + r.status }, r.status));
      });
      for (const kind of ["error", "abort", "timeout"]) r.addEventListener(kind, () => failed(new Error()));
      r.open("PUT", path);
      r.setRequestHeader("Content-Type", "application/octet-stream");
      r.send(raw);
    });
  }
}
customElements.define("as-attaching", Attaching);

// takesFiles lets a form take what is dropped on it and pasted into its field.
export function takesFiles(form, field, files, marked = form) {
  const carries = (e) => e.dataTransfer?.types.includes("Files");
  const mark = (on) => attr(marked, "data-drop", on);
  field.addEventListener("paste", (e) => {
    if (!e.clipboardData?.files.length || field.disabled) return;
    e.preventDefault();
    files.add(e.clipboardData.files);
  });
  form.addEventListener("dragover", (e) => { if (carries(e)) { e.preventDefault(); mark(true); } });
  form.addEventListener("dragleave", (e) => { if (!form.contains(e.relatedTarget)) mark(false); });
  form.addEventListener("drop", (e) => {
    if (!carries(e)) return;
    e.preventDefault();
    mark(false);
    if (!field.disabled) files.add(e.dataTransfer.files);
  });
}

// sum is the content's hash; "" where a browser has no means, on plain http from another machine: then the node says it.
async function sum(raw) {
  if (!crypto.subtle) return "";
  return [...new Uint8Array(await crypto.subtle.digest("SHA-256", raw))].map((b) => b.toString(16).padStart(2, "0")).join("");
}
