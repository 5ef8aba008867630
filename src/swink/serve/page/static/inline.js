// The inside of a paragraph as nodes: code, emphasis, links to the web. HTML in it stays text.
//
// Linear in the text: a closing mark that was not found once is not looked for again, and marks nest no deeper
// than `DEEPEST`.

import { element } from "./dom.js";

const DEEPEST = 6;
const SPECIAL = /[\\`*_~[!<\n]|https?:\/\//g;
const LINK = /!?\[((?:[^[\]\\]|\\.){0,500})\]\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\)){1,2000})>?(?:\s+"[^"\n]{0,200}")?\s*\)/y;
const ADDRESS = /https?:\/\/[^\s<>"'`]{1,2000}/y;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const MARKS = ["**", "__", "~~", "*", "_"];
const TAGS = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" };

/** The nodes of a text. */
export function inline(text, depth = 0, linked = false) {
  const nodes = [];
  const missing = new Set();
  let plain = "";
  let at = 0;
  const add = (node) => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
    nodes.push(node);
  };
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text);
    if (next === null) break;
    plain += text.slice(at, next.index);
    at = next.index;
    const found = special(text, at, depth, missing, linked);
    if (found === null) {
      plain += text[at];
      at += 1;
    } else if (typeof found.node === "string") {
      plain += found.node;
      at = found.end;
    } else {
      add(found.node);
      at = found.end;
    }
  }
  plain += text.slice(at);
  if (plain) nodes.push(document.createTextNode(plain));
  return nodes;
}

function special(text, at, depth, missing, linked) {
  switch (text[at]) {
    case "\\":
      if (text[at + 1] === "\n") return { node: element("br"), end: at + 2 };
      return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "") ? { node: text[at + 1], end: at + 2 } : null;
    case "\n":
      return text.slice(at - 2, at) === "  " ? { node: element("br"), end: at + 1 } : null;
    case "`":
      return code(text, at, missing);
    case "<":
      return linked ? null : matched(AUTOLINK, text, at, ([whole, target]) => link(target, [target]) ?? whole);
    case "h":
      return linked ? { node: "h", end: at + 1 } : address(text, at);
    case "[":
    case "!":
      if (linked) return null;
      return matched(LINK, text, at, ([whole, label, target]) => link(target, inline(label || target, depth + 1, true)) ?? whole);
    default:
      return emphasis(text, at, depth, missing, linked);
  }
}

function matched(pattern, text, at, make) {
  pattern.lastIndex = at;
  const match = pattern.exec(text);
  return match === null ? null : { node: make(match), end: pattern.lastIndex };
}

function code(text, at, missing) {
  const marks = /`+/y;
  marks.lastIndex = at;
  const fence = marks.exec(text)[0];
  let end = at + fence.length;
  while (!missing.has(fence)) {
    end = text.indexOf(fence, end);
    if (end < 0) missing.add(fence);
    else if (text[end + fence.length] !== "`" && text[end - 1] !== "`") {
      const inner = text.slice(at + fence.length, end).replaceAll("\n", " ");
      const textContent = /^ .*\S.* $/.test(inner) ? inner.slice(1, -1) : inner;
      return { node: element("code", { textContent }), end: end + fence.length };
    } else while (text[end] === "`") end += 1;
  }
  return { node: fence, end: at + fence.length };
}

function emphasis(text, at, depth, missing, linked) {
  const mark = MARKS.find((each) => text.startsWith(each, at));
  if (mark === undefined || missing.has(mark) || depth >= DEEPEST) return skip(text, at);
  const start = at + mark.length;
  const inWord = mark[0] === "_" && /\w/.test(text[at - 1] ?? " ");
  if (inWord || /\s/.test(text[start] ?? " ")) return skip(text, at);
  for (let end = text.indexOf(mark, start + 1); end >= 0; end = text.indexOf(mark, end + 1)) {
    const after = text[end + mark.length] ?? " ";
    const isDoubled = mark.length === 1 && (after === mark || text[end - 1] === mark);
    const isOpen = /\s/.test(text[end - 1]) || (mark[0] === "_" && /\w/.test(after)) || isDoubled;
    if (isOpen) continue;
    const node = element(TAGS[mark], {}, ...inline(text.slice(start, end), depth + 1, linked));
    return { node, end: end + mark.length };
  }
  missing.add(mark);
  return skip(text, at);
}

/** A row of marks that open nothing, as one piece. */
function skip(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return { node: text.slice(at, end), end };
}

function address(text, at) {
  ADDRESS.lastIndex = at;
  const target = (ADDRESS.exec(text)?.[0] ?? "").replace(/[.,;:!?)\]}*_]+$/, "");
  const node = link(target, [target]);
  return node === null ? null : { node, end: at + target.length };
}

/** A link to the web, or null: no other scheme leads anywhere. */
function link(target, label) {
  let url;
  try {
    url = new URL(target);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const rel = "noopener noreferrer nofollow";
  return element("a", { href: url.href, title: url.href, target: "_blank", rel }, ...label);
}
