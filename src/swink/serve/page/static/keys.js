// The keys of the whole page, their list, and the theme.

import { byId, element } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const KEYS = [
  ["Enter", "Send; while it runs: steer"],
  ["Alt+Enter", "While it runs: send after the answer"],
  ["Escape", "Stop the run"],
  ["Alt+A, then y or n", "Go to the approval; allow, refuse"],
  ["Alt+N", "New conversation"],
  ["Alt+S", "Search conversations; ↑ ↓ go through them"],
  ["Alt+P", "To the prompt"],
  ["Alt+J, Alt+U", "Next, previous entry"],
  ["Alt+E", "To the end"],
  ["Alt+K", "These keys"],
];

/** Listen to the keys of the page; `actions` has what they do. */
export function listenToKeys(actions) {
  byId("key-list").replaceChildren(...KEYS.flatMap(([key, what]) => [element("dt", { textContent: key }), element("dd", { textContent: what })]));
  const help = () => byId("help").showModal();
  const byCode = {
    KeyA: actions.approve,
    KeyN: actions.begin,
    KeyS: actions.find,
    KeyP: actions.prompt,
    KeyE: actions.end,
    KeyJ: () => step(1),
    KeyU: () => step(-1),
    KeyK: help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.altKey && !event.ctrlKey && !event.metaKey && event.code in byCode) {
      event.preventDefault();
      byCode[event.code]();
    } else if (event.key === "Escape") escape(event, actions);
  });
  byId("keys").addEventListener("click", help);
  for (const each of document.querySelectorAll("#more .actions > *")) each.addEventListener("click", () => each.id !== "theme" && (byId("more").open = false));
  document.addEventListener("click", (event) => byId("more").contains(event.target) || (byId("more").open = false));
}

/** Escape closes what is open; only then does it stop the run. */
function escape(event, actions) {
  if (byId("help").open) return;
  if (byId("more").open) {
    byId("more").open = false;
    byId("more").querySelector("summary").focus();
  } else if (actions.isRunning() && !byId("sidebar").contains(event.target)) {
    event.preventDefault();
    actions.stop();
  }
}

/** Go to the next entry, or the one before: to what of it takes the focus. */
function step(way) {
  const entries = Array.from(byId("log").querySelectorAll(".entry"));
  const at = entries.findIndex((entry) => entry.contains(document.activeElement));
  const entry = entries[at < 0 ? (way < 0 ? entries.length - 1 : 0) : at + way];
  if (entry === undefined) return;
  const target = entry.localName === "details" ? entry.firstElementChild : entry;
  if (target === entry) entry.tabIndex = -1;
  target.focus();
  target.scrollIntoView({ block: "nearest" });
}

/** Show the theme that was chosen in this browser, and let it be changed. */
export function showTheme() {
  const draw = () => {
    const theme = stored();
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    byId("theme").textContent = `Theme: ${theme}`;
  };
  byId("theme").addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(stored()) + 1) % THEMES.length];
    try {
      localStorage.setItem("swink-theme", next);
    } catch {
      document.documentElement.dataset.theme = next; // for now: this browser keeps nothing
      return;
    }
    draw();
  });
  draw();
}

function stored() {
  try {
    const theme = localStorage.getItem("swink-theme");
    return THEMES.includes(theme) ? theme : "system";
  } catch {
    return document.documentElement.dataset.theme ?? "system";
  }
}
