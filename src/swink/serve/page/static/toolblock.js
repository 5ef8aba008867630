// A tool call as one folded block: what was asked, what it tells meanwhile, what came of it.

import { argumentList, gistOf, plain } from "./content.js";
import { counts, sideBySide } from "./diff.js";
import { element, flushSoon } from "./dom.js";

const MARKS = { writing: "…", ready: "·", waiting: "?", running: "●", done: "✓", failed: "✗" };
const SAID = { writing: "is being written", ready: "", waiting: "waits for approval", running: "runs", done: "", failed: "failed" };
const KEPT_UPDATES = 200;

/** One call; change it with `change`, it is drawn with the next frame. */
export class ToolBlock {
  constructor(name) {
    this.name = name;
    this.given = null;
    this.asWritten = null;
    this.written = 0;
    this.state = "writing";
    this.updates = [];
    this.result = null;
    this.mark = element("span", { className: "mark", "aria-hidden": "true" });
    this.gist = element("span", { className: "gist" });
    this.count = element("span", { className: "count" });
    this.said = element("span", { className: "state" });
    const summary = element("summary", {}, this.mark, element("b", { textContent: name }), this.gist, this.count, this.said);
    this.body = element("div", { className: "body" });
    this.node = element("details", { className: "entry tool", ontoggle: () => this.node.open && this.fill() }, summary, this.body);
    this.flush();
  }

  /** Take over some of `given`, `state`, `result`; a settled call stays settled. */
  change(values) {
    if (this.result !== null && values.state && !("result" in values)) delete values.state;
    Object.assign(this, values);
    flushSoon(this);
  }

  tell(text) {
    this.updates.push(text);
    if (this.updates.length > KEPT_UPDATES) this.updates.shift();
    flushSoon(this);
  }

  write(json) {
    this.written += json.length;
    flushSoon(this);
  }

  flush() {
    this.node.className = `entry tool ${this.state}`;
    this.mark.textContent = MARKS[this.state];
    const last = this.state === "running" ? this.updates.at(-1) : undefined;
    this.gist.textContent = last ?? (this.given === null ? (this.written ? `${this.written} characters` : "") : gistOf(this.given));
    this.said.textContent = SAID[this.state];
    this.countLines();
    if (this.node.open) this.fill();
  }

  countLines() {
    const { old_content: old, new_content: fresh } = this.result?.details ?? {};
    if (fresh === undefined || this.count.firstChild) return;
    const [added, removed] = counts(old ?? "", fresh ?? "");
    this.count.append(element("ins", { textContent: `+${added}` }), " ", element("del", { textContent: `−${removed}` }));
  }

  fill() {
    const parts = [];
    const { path, old_content: old, new_content: fresh } = this.result?.details ?? {};
    const diff = fresh === undefined ? null : sideBySide(old ?? "", fresh ?? "", `The change of ${path}`);
    if (diff !== null) parts.push(diff);
    else if (this.given !== null) parts.push(argumentList(this.given));
    if (this.result === null && this.updates.length) parts.push(element("pre", { textContent: this.updates.join("\n"), tabIndex: 0 }));
    if (this.result !== null && (diff === null || this.state === "failed")) {
      parts.push(element("p", { className: "label", textContent: "Result" }), ...plain(this.result.content));
    }
    this.body.replaceChildren(...parts);
  }
}

/** What a tool tells while it runs, in one line. */
export function progressOf(update) {
  if (typeof update === "string") return update.trimEnd().split("\n").at(-1).slice(0, 300);
  if (update?.type !== "nested_event") return typeof update?.text === "string" ? update.text.slice(0, 300) : JSON.stringify(update ?? null).slice(0, 300);
  const { path, event } = update;
  const who = path.join(" › ");
  switch (event.type) {
    case "tool_execution_start":
      return `${who}: ${event.name} ${gistOf(event.arguments)}`;
    case "message_end":
      return event.message.role === "assistant" ? `${who} said something` : null;
    default:
      return null;
  }
}
