// Attachments: saved as files, or looked at here as text or as pixels. A picture is decoded and drawn; no attachment ever
// becomes a document, and none has an address of its own that could be opened.
import { el, foreign, text } from "./dom.js";
import { bytes } from "./words.js";
import { t } from "./strings.js";

const textMax = 64 << 10; // shown
const bytesMax = 8 << 20; // fetched for a look
const pixelsMax = 1600;

const pictures = [[0x89, 0x50, 0x4e, 0x47], [0xff, 0xd8, 0xff], [0x47, 0x49, 0x46, 0x38], [0x52, 0x49, 0x46, 0x46]]; // PNG, JPEG, GIF, WebP

export function attachments(m) {
  return listed((m.envelope.blobs ?? []).map((b) => item(m, b)));
}

function listed(items) {
  return items.length ? [el("h3", {}, t("f_attachments")), el("ol", { class: "attachments" }, ...items)] : [];
}

// taskFiles are what was given with a task and what its reports brought, each with who gave it. The same files are the same
// nodes for as long as holder lives, so that what is being looked at stays open while the panel is drawn anew.
export function taskFiles(task, thread, holder) {
  const said = new Map();
  for (const m of [...(thread?.messages ?? []), ...(task.reports ?? [])]) {
    const e = m.envelope;
    if (e.blobs?.length && (e.id === task.id || (e.re === task.id && e.intent === "WorkerReport"))) said.set(m.node + m.pos, m);
  }
  const all = [...said.values()].sort((a, b) => a.pos - b.pos);
  const key = JSON.stringify(all.map((m) => [m.envelope.id, m.envelope.blobs]));
  if (holder.filesKey !== key) {
    holder.filesKey = key;
    holder.files = listed(all.flatMap((m) => m.envelope.blobs.map((b) => item(m, b, m.envelope.from || t("a_person")))));
  }
  return holder.files;
}

function item(m, b, who) {
  const path = "/api/v1/messages/" + encodeURIComponent(m.envelope.id) + "/attachments/" + b.sha256;
  const view = el("div", { class: "preview", hidden: true });
  const look = el("button", { type: "button", hidden: b.bytes > bytesMax, "data-act": "look" + b.sha256.slice(0, 8), on: { click: () => show(path, view, look) } }, t("look_at"));
  return el("li", {}, foreign(b.name || b.sha256.slice(0, 12), { class: "name", dir: "ltr" }), el("span", { class: "quiet" }, bytes(b.bytes), b.use ? " · " + b.use : "", who ? " · " : "", who ? foreign(who) : ""), el("span", { class: "spacer" }), look,
    el("a", { class: "button", href: path, download: "", "data-act": "save" + b.sha256.slice(0, 8) }, t("save_file")), view);
}

async function show(path, view, look) {
  if (!view.hidden) {
    view.hidden = true;
    text(look, t("look_at"));
    return;
  }
  view.hidden = false;
  text(look, t("look_away"));
  view.replaceChildren(el("p", { class: "quiet" }, t("looking")));
  try {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(answer.statusText);
    const raw = new Uint8Array(await answer.arrayBuffer());
    view.replaceChildren(pictures.some((magic) => magic.every((b, i) => raw[i] === b)) ? await picture(raw) : words(raw));
  } catch {
    view.replaceChildren(el("p", { class: "quiet" }, t("look_failed")));
  }
}

async function picture(raw) {
  const decoded = await createImageBitmap(new Blob([raw]));
  const scale = Math.min(1, pixelsMax / Math.max(decoded.width, decoded.height));
  const canvas = el("canvas", { width: Math.max(1, Math.round(decoded.width * scale)), height: Math.max(1, Math.round(decoded.height * scale)), role: "img", "aria-label": t("a_picture") });
  canvas.getContext("2d").drawImage(decoded, 0, 0, canvas.width, canvas.height);
  decoded.close();
  return canvas;
}

function words(raw) {
  let shown;
  try {
    shown = new TextDecoder("utf-8", { fatal: true }).decode(raw.length > textMax ? raw.slice(0, textMax - 4) : raw, { stream: raw.length > textMax });
  } catch {
    return el("p", { class: "quiet" }, t("no_preview"));
  }
  if (shown.includes("\u0000")) return el("p", { class: "quiet" }, t("no_preview"));
  return foreign(shown + (raw.length > textMax ? "\n…" : ""), { class: "words output" });
}
