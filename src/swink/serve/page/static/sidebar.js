// The conversations, the newest first, and the search in them.

import { ask } from "./api.js";
import { byId, element } from "./dom.js";

const TYPING = 200;

/** The list beside the conversation; `open(id)` is called with what was chosen, null for a new one. */
export class Sidebar {
  constructor(open, complain) {
    this.open = open;
    this.complain = complain;
    this.current = null;
    this.asked = 0;
    this.timer = 0;
    byId("new").addEventListener("click", () => this.choose(null));
    byId("menu").addEventListener("click", () => this.show(!this.isShown));
    byId("search").addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.refresh(), TYPING);
    });
    byId("sidebar").addEventListener("keydown", (event) => this.key(event));
  }

  get isShown() {
    return document.body.classList.contains("listing");
  }

  /** On a phone the list lies over the conversation. */
  show(isShown) {
    document.body.classList.toggle("listing", isShown);
    byId("menu").setAttribute("aria-expanded", String(isShown));
    if (isShown) byId("search").focus();
  }

  async refresh() {
    this.asked += 1;
    const number = this.asked;
    const words = byId("search").value.trim();
    try {
      const answer = await ask("GET", `conversations${words ? `?search=${encodeURIComponent(words)}` : ""}`);
      if (number === this.asked) this.draw(answer.conversations ?? answer);
    } catch (error) {
      this.complain(error);
    }
  }

  mark(id) {
    this.current = id;
    for (const button of byId("conversations").querySelectorAll("button")) {
      if (button.dataset.id === id) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  titleOf(id) {
    const found = Array.from(byId("conversations").querySelectorAll("button")).find((button) => button.dataset.id === id);
    return found?.dataset.title ?? "";
  }

  draw(conversations) {
    const focused = byId("conversations").contains(document.activeElement) ? document.activeElement.dataset.id : null;
    byId("none").hidden = conversations.length > 0;
    byId("none").textContent = byId("search").value.trim() ? "Nothing found." : "No conversations yet.";
    byId("conversations").replaceChildren(...conversations.map((each) => this.row(each)));
    this.mark(this.current);
    if (focused) byId("conversations").querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  row({ id, title, updated, excerpt }) {
    const when = updated ? new Date(typeof updated === "number" ? updated * 1000 : updated) : null;
    const name = element("span", { textContent: title || "Untitled" });
    const time = when === null ? null : element("time", { dateTime: when.toISOString(), textContent: shortTime(when) });
    const found = excerpt ? element("small", { textContent: excerpt }) : null;
    const button = element("button", { type: "button", onclick: () => this.choose(id) }, name, time, found);
    button.dataset.id = id;
    button.dataset.title = title;
    return element("li", {}, button);
  }

  choose(id) {
    this.show(false);
    this.open(id);
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      this.show(false);
      byId("prompt").focus();
    }
    if (step === undefined) return;
    event.preventDefault();
    const places = [byId("search"), ...byId("conversations").querySelectorAll("button")];
    places[places.indexOf(document.activeElement) + step]?.focus();
  }
}

function shortTime(when) {
  const isToday = when.toDateString() === new Date().toDateString();
  return isToday ? when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : when.toLocaleDateString([], { day: "numeric", month: "short" });
}
