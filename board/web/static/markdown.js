// Words of others as elements. The node has parsed them into a tree of allowed kinds; nothing here reads markup.
import { foreign } from "./dom.js";

// wordsNode shows a value as its text where it has nothing else to say, else as indented JSON.
export function wordsNode(m) {
  return [foreign(pretty(m.envelope.value) || m.text, { class: "words" })];
}

function pretty(value) {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const keys = Object.keys(value).filter((k) => k !== "promptId" && k !== "re_msgId");
  if (keys.length === 1 && typeof value[keys[0]] === "string") return value[keys[0]];
  return JSON.stringify(value, null, 2);
}
