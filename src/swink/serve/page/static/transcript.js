// The conversation: messages that are there, and events of a run that goes on, as one growing list of entries.
//
// Entries are only ever appended; a reply that is being written is a draft until its message ends. A message
// that is shown already (a run is told from its start after a reload) is not shown again.

import { blocksOf, picture, plain, textOf } from "./content.js";
import { announce, element, flushSoon } from "./dom.js";
import { Prose } from "./markdown.js";
import { ToolBlock, progressOf } from "./toolblock.js";

const AT_ONCE = 60;
// The browser looks at each part in every frame, to see whether it is in sight: entries are laid out together.
const TOGETHER = 30;

/** The list of entries; `onprompt(action, index, text)` hears the buttons of prompts. */
export class Transcript {
  constructor(log, onprompt) {
    this.log = log;
    this.onprompt = onprompt;
    this.clear();
  }

  clear() {
    this.log.replaceChildren();
    this.part = null;
    flushSoon(this);
    this.count = 0;
    this.draft = new Map();
    this.tools = new Map();
    this.known = new Set();
    this.isLoading = false;
    this.totals = { cost: 0, isKnown: true, context: 0, model: "" };
  }

  get isEmpty() {
    return this.log.firstChild === null;
  }

  /** Show a history, a part in every frame; `signal` ends it. */
  async load(messages, signal) {
    this.clear();
    this.isLoading = true;
    for (let at = 0; at < messages.length; at += AT_ONCE) {
      for (const message of messages.slice(at, at + AT_ONCE)) this.add(message);
      if (messages.length > AT_ONCE) await new Promise((resolve) => setTimeout(resolve));
      if (signal.aborted) return;
    }
    this.isLoading = false;
    for (const tool of this.tools.values()) if (tool.result === null) tool.change({ state: "waiting" });
  }

  take(event) {
    switch (event.type) {
      case "message_start":
        if (event.role === "assistant") this.discard();
        break;
      case "message_update":
        this.update(event.delta);
        break;
      case "message_discarded":
        this.discard();
        this.notice(`The attempt failed and is repeated: ${event.reason}`);
        break;
      case "message_end":
        this.add(event.message);
        break;
      case "tool_execution_start":
        this.tool(event.call_id, event.name).change({ given: event.arguments, state: "running" });
        announce(`${event.name} runs`);
        break;
      case "tool_execution_update":
        this.progress(event);
        break;
      case "tool_execution_end":
        this.settle(event.call_id, event.name, event.result, event.is_error);
        break;
      case "approval_requested":
        this.tool(event.call_id, event.name).change({ given: event.shown, state: "waiting" });
        break;
      case "approval_resolved":
        this.tool(event.call_id, event.name).change({ state: event.approved ? "running" : "failed" });
        break;
      default:
        this.remark(event);
    }
  }

  remark(event) {
    switch (event.type) {
      case "context_compacted":
        this.notice(`${event.report.dropped} messages were left out of the context.`);
        break;
      case "retry_scheduled":
        this.notice(`${event.error}; the next attempt begins in ${Math.ceil(event.delay)} s.`);
        break;
      case "model_fallback":
        this.notice(`${event.from_model} does not answer; ${event.to_model} goes on.`);
        break;
      case "custom_event":
        if (event.name === "notice") this.notice(String(event.data?.text ?? ""));
        break;
      case "result":
        if (event.error) this.notice(event.error, "failed");
        else if (event.stop_reason === "aborted") this.notice("Stopped.");
        else if (event.reason) this.notice(`The run ended: ${event.reason}`);
        break;
      default:
    }
  }

  notice(text, kind = "notice") {
    this.append(element("p", { className: `entry note ${kind}`, textContent: text }));
    announce(text, kind === "failed");
  }

  /** A message that is in the history. */
  add(message) {
    const key = keyOf(message);
    if (this.known.has(key)) {
      this.discard();
      return;
    }
    this.known.add(key);
    const index = this.count;
    this.count += 1;
    switch (message.role) {
      case "user":
        this.prompt(message, index);
        break;
      case "assistant":
        this.reply(message);
        break;
      case "tool_result":
        this.settle(message.tool_call_id, message.tool_name, message, message.is_error);
        break;
      default:
        break;
    }
  }

  prompt(message, index) {
    const text = textOf(message.content);
    const button = (action, label, title) =>
      element("button", { type: "button", textContent: label, title, onclick: () => this.onprompt(action, index, text) });
    const head = element(
      "div",
      { className: "head" },
      element("h2", { textContent: "You" }),
      button("rewind", "Rewind", "Go back to before this prompt, in a new conversation, and change it"),
      button("fork", "Fork", "Go on from the answer to this prompt in a new conversation"),
    );
    const said = element("p", { textContent: text });
    const pictures = blocksOf(message.content).filter((block) => block.type === "image").map(picture);
    const node = element("article", { className: "entry prompt", "aria-label": "Your prompt" }, head, said, ...pictures);
    node.dataset.index = index;
    this.append(node);
  }

  reply(message) {
    this.countUp(message);
    const blocks = blocksOf(message.content);
    for (const [index, view] of this.draft) {
      if (kindOf(blocks[index]) !== view.kind) {
        view.node.remove();
        this.draft.delete(index);
      }
    }
    blocks.forEach((block, index) => this.finish(block, index));
    this.draft.clear();
    if (message.error_message) this.notice(message.error_message, "failed");
    const said = textOf(message.content);
    if (said && !this.isLoading) announce(said.length > 400 ? `Answer: ${said.slice(0, 400)} …` : `Answer: ${said}`);
  }

  finish(block, index) {
    if (block.type === "tool_call") {
      const tool = this.tool(block.id, block.name);
      tool.change({ given: block.arguments ?? {}, asWritten: block.arguments ?? {}, state: tool.result === null && tool.state === "writing" ? "ready" : tool.state });
      return;
    }
    const text = block.type === "text" ? block.text : block.type === "thinking" ? block.thinking || (block.redacted ? "(not shown by the provider)" : "") : null;
    if (text === null) {
      this.append(element("div", { className: "entry" }, ...plain([block])));
      return;
    }
    if (!text) return;
    let view = this.draft.get(index);
    if (view !== undefined && view.prose.text !== text) {
      view.node.remove();
      view = undefined;
    }
    view ??= this.open(block.type, index);
    if (!view.prose.text) view.prose.append(text);
    view.prose.finish();
  }

  update(delta) {
    switch (delta.type) {
      case "text_delta":
        this.view("text", delta.index).prose.append(delta.text);
        break;
      case "thinking_delta":
        this.view("thinking", delta.index).prose.append(delta.text);
        break;
      case "tool_call_start": {
        const tool = this.tool(delta.id, delta.name);
        this.draft.set(delta.index, { kind: "tool_call", node: tool.node, tool, id: delta.id });
        break;
      }
      case "tool_call_delta":
        this.draft.get(delta.index)?.tool?.write(delta.json);
        break;
      default:
    }
  }

  view(kind, index) {
    return this.draft.get(index) ?? this.open(kind, index);
  }

  open(kind, index) {
    const body = element("div", { className: "prose" });
    const node =
      kind === "text"
        ? element("article", { className: "entry reply", "aria-label": "Answer" }, body)
        : element("details", { className: "entry thinking" }, element("summary", { textContent: "Thinking" }), body);
    const view = { kind, node, prose: new Prose(body) };
    this.draft.set(index, view);
    this.append(node);
    return view;
  }

  discard() {
    for (const view of this.draft.values()) {
      if (view.id !== undefined) {
        if (view.tool.result !== null || view.tool.state !== "writing") continue;
        this.tools.delete(view.id);
      }
      view.node.remove();
    }
    this.draft.clear();
  }

  tool(id, name) {
    let tool = this.tools.get(id);
    if (tool === undefined) {
      tool = new ToolBlock(name);
      this.tools.set(id, tool);
      this.append(tool.node);
    }
    return tool;
  }

  /** The arguments of a call as the model wrote them, if they are known. */
  givenTo(id) {
    return this.tools.get(id)?.asWritten ?? null;
  }

  progress({ call_id: id, name, update }) {
    const text = progressOf(update);
    if (text) this.tool(id, name).tell(text);
  }

  settle(id, name, result, isError) {
    const { content, details } = result;
    const tool = this.tool(id, name);
    if (tool.result !== null) return;
    tool.change({ result: { content, details }, state: isError || result.is_error ? "failed" : "done" });
    if (isError) announce(`${name} failed`);
  }

  countUp(message) {
    const usage = message.usage ?? {};
    const used = (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.cache_write ?? 0) + (usage.output ?? 0);
    if (used) this.totals.context = used;
    if (message.cost === null) this.totals.isKnown = false;
    this.totals.cost += message.cost?.total ?? 0;
    this.totals.model = message.provider ? `${message.provider}:${message.model}` : (message.model ?? "");
  }

  append(node) {
    if (this.part === null || this.part.childElementCount >= TOGETHER) {
      this.part = element("div", { className: "part-of-log" });
      this.log.append(this.part);
    }
    this.part.append(node);
    flushSoon(this);
  }

  /** The frame that is asked for by `append` alone: whoever follows the end hears of it. */
  flush() {}
}

const kindOf = (block) => block?.type;

/** What tells a message from all others of a conversation. */
function keyOf(message) {
  const said = message.role === "tool_result" ? message.tool_call_id : JSON.stringify(message.content ?? message.data ?? "").slice(0, 200);
  return `${message.role} ${message.timestamp} ${said}`;
}
