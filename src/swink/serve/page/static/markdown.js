// Markdown as it streams: what is complete is built once, only the last block is built again.
//
// Prose.append(text)   flush()   the blocks that are complete are committed; the last one is the tail
// an open code block   its text node only grows
// Prose.finish()       the tail is committed too

import { element, flushSoon } from "./dom.js";
import { highlight } from "./highlight.js";
import { inline } from "./inline.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const DEEPEST = 8;
const LONG = 6000;
const SELDOM = 250;

/** A text that grows, in a node of its own. */
export class Prose {
  constructor(node) {
    this.node = node;
    this.text = "";
    this.rest = "";
    this.tail = [];
    this.fence = null;
    this.shownAt = 0;
    this.isFinished = false;
  }

  append(text) {
    this.text += text;
    this.rest += text;
    flushSoon(this);
  }

  finish() {
    this.isFinished = true;
    flushSoon(this);
  }

  flush() {
    if (this.fence !== null) this.growFence();
    if (this.fence !== null || (this.isLong() && !this.isFinished)) return;
    this.shownAt = performance.now();
    const blocks = split(this.rest);
    for (const node of this.tail) node.remove();
    this.tail = [];
    const last = blocks.at(-1);
    if (last === undefined) return;
    for (const block of blocks.slice(0, -1)) this.add(build(block, 0));
    this.rest = this.rest.slice(last.start);
    if (last.kind === "fence" && !last.isClosed && this.rest.includes("\n")) this.openFence(last);
    else if (this.isFinished) this.add(build(last, 0));
    else this.tail = [this.add(build(last, 0))];
    if (this.isFinished) this.rest = this.fence === null ? "" : this.rest;
    if (this.isFinished && this.fence !== null) this.growFence();
  }

  /** A long last block is not built again with every frame. */
  isLong() {
    return this.rest.length > LONG && performance.now() - this.shownAt < SELDOM && (setTimeout(() => flushSoon(this), SELDOM), true);
  }

  /** A list goes on with its next item: each is a block of its own here. */
  add(node) {
    const before = this.node.lastElementChild;
    if (before !== null && before.localName === node.localName && node.dataset.joins !== undefined) {
      const item = node.firstElementChild;
      before.append(item);
      return item;
    }
    this.node.append(node);
    return node;
  }

  openFence(block) {
    const figure = codeFigure("", block.language);
    this.node.append(figure);
    const text = document.createTextNode("");
    figure.querySelector("code").append(text);
    this.fence = { close: block.close, text, language: block.language };
    this.rest = this.rest.slice(this.rest.indexOf("\n") + 1);
    this.growFence();
  }

  growFence() {
    const { close, text, language } = this.fence;
    const lineEnd = this.rest.lastIndexOf("\n") + 1;
    const grown = this.rest.slice(0, this.isFinished ? undefined : lineEnd);
    const match = closing(close).exec(grown);
    text.appendData(match === null ? grown : grown.slice(0, match.index));
    this.rest = match === null ? this.rest.slice(grown.length) : this.rest.slice(match.index + match[0].length);
    if (match === null && !this.isFinished) return;
    this.fence = null;
    const code = text.data.replace(/\n$/, "");
    text.parentNode.replaceChildren(...highlight(code, language));
  }
}

/** A whole text as Markdown. */
export function prose(text) {
  const node = element("div", { className: "prose" });
  node.append(...blocksOf(text, 0));
  return node;
}

/** Code in a box that scrolls by itself. */
export function codeFigure(code, language = "") {
  const copy = element("button", { type: "button", className: "copy", textContent: "Copy", onclick: copyCode });
  const caption = element("figcaption", {}, element("span", { textContent: language || "text" }), copy);
  const pre = element("pre", { tabIndex: 0 }, element("code", {}, ...highlight(code, language)));
  return element("figure", { className: "code" }, caption, pre);
}

async function copyCode(event) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(button.closest("figure").querySelector("code").textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

const closing = (mark) => new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}[ \\t]*(?:\\n|$)`, "m");

function blocksOf(text, depth) {
  const nodes = [];
  for (const block of split(text)) {
    const node = build(block, depth);
    const before = nodes.at(-1);
    if (node.dataset.joins !== undefined && before?.localName === node.localName) before.append(node.firstElementChild);
    else nodes.push(node);
  }
  return nodes;
}

/** The blocks of a text in order, each with its `start`; the last one may still grow. */
function split(text) {
  const lines = text.split("\n");
  const blocks = [];
  let start = 0;
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line.trim()) {
      start += line.length + 1;
      at += 1;
      continue;
    }
    const block = { ...take(lines, at), start };
    blocks.push(block);
    for (; at < block.end; at += 1) start += lines[at].length + 1;
  }
  return blocks;
}

function take(lines, at) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence !== null) return takeFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) return { kind: "heading", level: heading[1].length, text: heading[2] ?? "", end: at + 1 };
  if (RULE.test(line)) return { kind: "rule", end: at + 1 };
  if (QUOTE.test(line)) {
    const end = endOf(lines, at, (each) => each.trim() && (QUOTE.test(each) || !begins(each)));
    return { kind: "quote", text: lines.slice(at, end).map((each) => each.replace(QUOTE, "")).join("\n"), end };
  }
  const item = ITEM.exec(line);
  if (item !== null) return takeItem(lines, at, item);
  if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
    const end = endOf(lines, at, (each) => each.includes("|"));
    return { kind: "table", rows: lines.slice(at, end), end };
  }
  const end = endOf(lines, at, (each) => each.trim() && !begins(each));
  return { kind: "paragraph", text: lines.slice(at, end).join("\n"), end };
}

const begins = (line) =>
  FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

function endOf(lines, at, belongs) {
  let end = at + 1;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return end;
}

function takeFence(lines, at, [, close, language]) {
  const ends = closing(close);
  const end = endOf(lines, at, (each) => !ends.test(each));
  const isClosed = end < lines.length;
  const code = lines.slice(at + 1, end).join("\n");
  return { kind: "fence", close, language, code, isClosed, end: isClosed ? end + 1 : end };
}

function takeItem(lines, at, [, indent, mark, space, first]) {
  const width = indent.length + mark.length + Math.min(Math.max(space.length, 1), 4);
  const isInside = (line) => /^\s*$/.test(line) || /^\s*/.exec(line)[0].length >= width;
  let end = endOf(lines, at, (line) => isInside(line) || !begins(line));
  const blank = lines.findIndex((line, index) => index > at && index < end && !line.trim());
  if (blank >= 0 && !isInside(lines[blank + 1] ?? "")) end = blank;
  for (let index = at + 1; index < end; index += 1) {
    if (!lines[index].trim() && !isInside(lines[index + 1] ?? "")) end = index;
  }
  const others = lines.slice(at + 1, end).map((line) => line.slice(Math.min(width, /^\s*/.exec(line)[0].length)));
  const number = /^\d/.test(mark) ? Number.parseInt(mark, 10) : null;
  return { kind: "item", number, text: [first, ...others].join("\n"), end };
}

function build(block, depth) {
  switch (block.kind) {
    case "heading":
      return element(`h${Math.min(block.level + 2, 6)}`, {}, ...inline(block.text));
    case "rule":
      return element("hr");
    case "fence":
      return codeFigure(block.code, block.language);
    case "quote":
      return element("blockquote", {}, ...inner(block.text, depth));
    case "item":
      return item(block, depth);
    case "table":
      return table(block.rows);
    default:
      return element("p", {}, ...inline(block.text));
  }
}

const inner = (text, depth) => (depth >= DEEPEST ? [element("p", { textContent: text })] : blocksOf(text, depth + 1));

function item({ number, text }, depth) {
  const task = /^\[([ xX])\]\s+/.exec(text);
  const nodes = inner(task === null ? text : text.slice(task[0].length), depth);
  if (nodes.length && nodes[0].localName === "p") nodes.splice(0, 1, ...nodes[0].childNodes);
  const mark = task === null ? [] : [element("span", { className: "task", textContent: task[1] === " " ? "☐ " : "☑ " })];
  const list = element(number === null ? "ul" : "ol", {}, element("li", {}, ...mark, ...nodes));
  list.dataset.joins = "";
  if (number !== null) list.start = number;
  return list;
}

function table([head, divider, ...rows]) {
  const sides = cells(divider).map((cell) => (/^:.*:$/.test(cell) ? "middle" : cell.endsWith(":") ? "right" : ""));
  const row = (tag, line) =>
    element("tr", {}, ...cells(line).slice(0, sides.length).map((cell, index) => element(tag, { className: sides[index] }, ...inline(cell))));
  const body = element("tbody", {}, ...rows.map((line) => row("td", line)));
  const made = element("table", {}, element("thead", {}, row("th", head)), body);
  return element("div", { className: "table", tabIndex: 0 }, made);
}

function cells(line) {
  const trimmed = line.trim().replace(/^\|/, "").replace(/([^\\]|^)\|$/, "$1");
  return trimmed.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}
