// What messages and tools hold: texts, pictures, arguments.

import { element } from "./dom.js";
import { codeFigure } from "./markdown.js";

const SHOWN_IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const GIST = ["command", "path", "file_path", "pattern", "query", "url", "description", "prompt", "name"];
const LANGUAGES = { command: "sh", script: "sh", code: "python", sql: "sql" };
const MOST_SHOWN = 100_000;

/** The blocks of a message's content: a text alone is one. */
export const blocksOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []));

/** The text of a content, without what is none. */
export function textOf(content) {
  return blocksOf(content).filter((block) => block.type === "text").map((block) => block.text).join("\n");
}

/** A picture, if it came along; nothing is fetched from elsewhere. */
export function picture(block) {
  const { type, data, media_type: kind, url } = block.source ?? {};
  if (type === "base64" && SHOWN_IMAGES.has(kind)) return element("img", { src: `data:${kind};base64,${data}`, alt: "Picture", loading: "lazy" });
  return element("p", { className: "aside", textContent: url ? `Picture: ${url}` : `Picture (${kind ?? "a file"})` });
}

/** The content of a result, as it was said: no Markdown. */
export function plain(content) {
  return blocksOf(content).map((block) => {
    if (block.type === "image") return picture(block);
    const text = block.type === "text" ? block.text : JSON.stringify(block, null, 2);
    const isCut = text.length > MOST_SHOWN;
    const textContent = isCut ? `${text.slice(0, MOST_SHOWN)}\n… ${text.length - MOST_SHOWN} more characters; the export has them` : text;
    return element("pre", { textContent, tabIndex: 0 });
  });
}

/** Arguments of a call by name; code as code. */
export function argumentList(given) {
  const list = element("dl", { className: "arguments" });
  for (const [name, value] of Object.entries(given ?? {})) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const isCode = name in LANGUAGES || text.includes("\n");
    const shown = isCode ? codeFigure(text.slice(0, MOST_SHOWN), LANGUAGES[name] ?? "") : element("code", { textContent: text.slice(0, MOST_SHOWN) });
    list.append(element("dt", { textContent: name }), element("dd", {}, shown));
  }
  return list;
}

/** What a call is about, in one line. */
export function gistOf(given) {
  const values = Object.entries(given ?? {}).filter(([, value]) => typeof value === "string");
  const found = GIST.map((name) => values.find(([other]) => other === name)).find(Boolean) ?? values[0];
  return found === undefined ? "" : found[1].split("\n")[0].slice(0, 200);
}

/** The changes that a call would make, as `{label, old, fresh}`: those of one `edits` can be chosen from. */
export function changesOf(name, given) {
  if (Array.isArray(given?.edits)) {
    return given.edits.map((edit, index) => ({
      label: `Change ${index + 1} of ${given.edits.length} in ${given.path ?? "the file"}`,
      old: edit.old_text ?? edit.old_string ?? edit.old ?? "",
      fresh: edit.new_text ?? edit.new_string ?? edit.new ?? "",
    }));
  }
  if (name === "write_file" && typeof given?.content === "string") return [{ label: `The content of ${given.path}`, old: "", fresh: given.content }];
  return [];
}

/** A number of tokens in a few characters. */
export const tokens = (count) => (count < 1000 ? String(count) : count < 1e6 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1e6).toFixed(2)}M`);

/** Dollars: small ones with more digits. */
export const dollars = (amount) => (amount ? `$${amount < 1 ? amount.toFixed(4) : amount.toFixed(2)}` : "$0");
