// Calls that wait for a yes or a no: one card at a time, the changes of an edit each with its own choice.

import { argumentList, changesOf } from "./content.js";
import { sideBySide } from "./diff.js";
import { announce, element } from "./dom.js";

const A_MOMENT = 120;

/** The calls that wait; `answer(call, {approved, reason, chosen})` sends what was decided. */
export class Approvals {
  constructor(section, answer) {
    this.section = section;
    this.answer = answer;
    this.waiting = new Map();
    this.coming = new Map();
    this.rules = new Map();
    this.shown = null;
    section.addEventListener("keydown", (event) => this.key(event));
  }

  /** A call that waits: `{id, name, shown}`. Rules may decide it in a moment: that is not worth a card. */
  add(call) {
    this.remove(call.id);
    this.coming.set(call.id, setTimeout(() => this.show(call), A_MOMENT));
  }

  /** Rules that would allow this call and its like; the person may change them. */
  offer(id, rules) {
    this.rules.set(id, rules);
    if (this.shown !== id) return;
    this.shown = null;
    this.draw();
  }

  show(call) {
    this.coming.delete(call.id);
    this.waiting.set(call.id, call);
    announce(`${call.name} waits for your approval. Alt A goes there.`, true);
    this.draw();
  }

  remove(id) {
    clearTimeout(this.coming.get(id));
    this.coming.delete(id);
    if (this.waiting.delete(id)) this.draw();
  }

  clear() {
    for (const id of [...this.coming.keys()]) this.remove(id);
    this.waiting.clear();
    this.draw();
  }

  focus() {
    this.section.querySelector("button.yes")?.focus();
  }

  key(event) {
    if (event.target.matches("input[type=text]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = { y: "button.yes", n: "button.no", a: "button.always" }[event.key];
    if (found === undefined) return;
    event.preventDefault();
    this.section.querySelector(found)?.click();
  }

  draw() {
    const call = this.waiting.values().next().value;
    this.section.hidden = call === undefined;
    if (call === undefined) {
      const had = this.section.contains(document.activeElement);
      this.section.replaceChildren();
      this.shown = null;
      if (had) document.getElementById("prompt").focus();
      return;
    }
    this.section.querySelector(".count")?.replaceChildren(this.position());
    if (this.shown === call.id) return;
    const had = this.section.contains(document.activeElement);
    this.shown = call.id;
    this.section.replaceChildren(...this.card(call));
    if (had) this.focus();
  }

  position() {
    return this.waiting.size > 1 ? `1 of ${this.waiting.size}` : "";
  }

  card(call) {
    const changes = changesOf(call.name, call.shown);
    const isMany = changes.length > 1 && call.given !== undefined && sameData(call.given, call.shown);
    const boxes = isMany ? changes.map(({ label }) => element("input", { type: "checkbox", checked: true, "aria-label": label })) : [];
    const parts = changes.map((change, index) => part(change, boxes[index]));
    const reason = element("input", { type: "text", placeholder: "Why not, for the model", "aria-label": "Reason of a refusal" });
    const decide = (approved) => () => this.decide(call, approved, reason.value.trim(), boxes);
    const yes = element("button", { type: "button", className: "yes", textContent: "Allow (y)", onclick: decide(true) });
    const no = element("button", { type: "button", className: "no", textContent: "Refuse (n)", onclick: decide(false) });
    const tell = () => {
      const count = boxes.filter((box) => box.checked).length;
      yes.textContent = count === boxes.length ? "Allow (y)" : `Allow ${count} of ${boxes.length} (y)`;
      yes.disabled = count === 0;
      const whole = this.section.querySelector("button.always");
      if (whole !== null) whole.disabled = count < boxes.length; // a rule allows all of it
    };
    for (const box of boxes) box.addEventListener("change", tell);
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter") no.click();
    });
    const count = element("span", { className: "count" }, this.position());
    const head = element("h2", {}, "Run ", element("code", { textContent: call.name }), "? ", count);
    const others = Object.fromEntries(Object.entries(call.shown ?? {}).filter(([name]) => !parts.length || !["edits", "content"].includes(name)));
    const body = element("div", { className: "asked", tabIndex: 0, role: "region", "aria-label": "What it would do" }, argumentList(others), ...parts);
    return [head, body, element("div", { className: "decide" }, yes, no, reason), ...this.always(call)];
  }

  /** Allow it and its like from now on, by rules that can be changed before. */
  always(call) {
    const offered = this.rules.get(call.id) ?? [];
    if (!offered.length) return [];
    const fields = offered.map((rule) => element("input", { type: "text", value: rule, spellcheck: false, "aria-label": "Rule" }));
    const keep = () => {
      const rules = fields.map((field) => field.value.trim()).filter(Boolean);
      if (!rules.length || !this.waiting.has(call.id)) return;
      this.remove(call.id);
      this.answer(call, { approved: true, rules });
    };
    const button = element("button", { type: "button", className: "always", textContent: "Always, by this rule (a)", onclick: keep });
    return [element("div", { className: "decide" }, button, ...fields)];
  }

  decide(call, approved, reason, boxes) {
    const kept = boxes.flatMap((box, index) => (box.checked ? [index] : []));
    const isPart = approved && kept.length < boxes.length;
    if (!this.waiting.has(call.id)) return;
    this.remove(call.id);
    const chosen = isPart ? { ...call.given, edits: call.given.edits.filter((_, index) => kept.includes(index)) } : undefined;
    const refused = isPart ? `The user refused ${boxes.length - kept.length} of ${boxes.length} changes.` : "";
    this.answer(call, { approved, reason: reason || refused || undefined, chosen });
  }
}

/** Whether two values are the same JSON: what is shown may lack secrets, and must not be sent back then. */
function sameData(one, other) {
  if (one === null || typeof one !== "object" || other === null || typeof other !== "object") return one === other;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => sameData(one[name], other[name]));
}

function part({ label, old, fresh }, box) {
  const diff = sideBySide(old, fresh, label) ?? element("p", { textContent: "Changes nothing." });
  const title = box === undefined ? element("p", { className: "label", textContent: label }) : element("label", { className: "label" }, box, ` ${label}`);
  return element("div", { className: "part" }, title, diff);
}
