// The page: one conversation that is open, its run, and everything around it.

import { Refused, address, ask, attemptKey, follow } from "./api.js";
import { Approvals } from "./approvals.js";
import { Composer } from "./composer.js";
import { dollars, tokens } from "./content.js";
import { announce, byId, element, onFlushed } from "./dom.js";
import { listenToKeys, showTheme } from "./keys.js";
import { Settings } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { Transcript } from "./transcript.js";

const page = { id: null, run: null, stopped: new AbortController(), isAtEnd: true, isReading: false };

const transcript = new Transcript(byId("log"), goBack);
const approvals = new Approvals(byId("approvals"), answer);
const composer = new Composer(send, stop);
const sidebar = new Sidebar(open, complain);
const settings = new Settings(complain);

/** Show a conversation, and go on listening to it if it runs; null begins a new one. */
async function open(id) {
  page.stopped.abort();
  const stopped = (page.stopped = new AbortController());
  Object.assign(page, { id, run: null, isAtEnd: true });
  composer.setBusy(false);
  approvals.clear();
  transcript.clear();
  connection("");
  sidebar.mark(id);
  place(id);
  settings.load(id);
  drawHead();
  composer.focus();
  if (id === null) return;
  try {
    const found = await ask("GET", `conversations/${id}/messages`);
    if (stopped.signal.aborted) return;
    await transcript.load(found.messages, stopped.signal);
    if (stopped.signal.aborted) return;
    drawHead();
    for (const { call_id: call, name, shown } of found.pending ?? []) approvals.add({ id: call, name, shown });
    if (found.interrupted) offer(found.interrupted);
    if (found.running) await listen(found.running);
  } catch (error) {
    if (!stopped.signal.aborted) complain(error);
  }
}

/** Offer to go on with a run that its process left unfinished. */
function offer(run) {
  const begin = () => {
    node.remove();
    composer.focus();
    listen(run);
  };
  const button = element("button", { type: "button", textContent: "Go on", onclick: begin });
  const node = element("p", { className: "entry note interrupted" }, "The program ended before this was done. ", button);
  transcript.append(node);
  announce("This run was interrupted. The button Go on is at its end.", true);
}

/** Put the conversation into the address, and nothing else: the token in it is used. */
const place = (id) => history.replaceState(null, "", id === null ? location.pathname : `${location.pathname}#${id}`);

/** Take the events of a run until it ends, also over a connection that breaks. */
async function listen(run) {
  const { id, stopped } = page;
  page.run = run;
  composer.setBusy(true);
  try {
    for await (const event of follow(`conversations/${id}/runs/${run}/events`, stopped.signal, connection)) {
      if (stopped.signal.aborted) return;
      take(event);
    }
  } catch (error) {
    if (stopped.signal.aborted) return;
    if (error instanceof Refused && error.status === 410) return open(id);
    complain(error);
  }
  if (stopped.signal.aborted) return;
  page.run = null;
  composer.setBusy(false);
  connection("");
  sidebar.refresh().then(drawHead);
}

function take(event) {
  transcript.take(event);
  switch (event.type) {
    case "tool_execution_update":
      if (event.update?.type === "nested_event") takeNested(event.update.event);
      break;
    case "approval_requested":
      approvals.add({ id: event.call_id, name: event.name, shown: event.shown, given: transcript.givenTo(event.call_id) });
      break;
    case "approval_resolved":
    case "tool_execution_start":
    case "tool_execution_end":
      approvals.remove(event.call_id);
      break;
    case "custom_event":
      if (event.name === "prompt_progress" && event.data?.total) reading(event.data);
      if (event.name === "approval_rules") approvals.offer(event.data.call_id, event.data.rules);
      break;
    case "message_update":
      reading(null);
      break;
    case "message_end":
      drawFigures();
      if (event.message.role === "user") sidebar.refresh().then(drawHead); // its first prompt is its title
      break;
    case "agent_end":
      approvals.clear();
      announce(event.stop_reason === "stop" ? "Done" : `Ended: ${event.reason ?? event.stop_reason}`);
      break;
    default:
  }
}

/** How much of a long prompt a slow model has read; null once it speaks. */
function reading(progress) {
  const isShown = page.isReading;
  page.isReading = progress !== null && progress.done < progress.total;
  const share = progress && Math.floor((progress.done / progress.total) * 100);
  if (page.isReading) byId("connection").textContent = `The model reads: ${share} %`;
  else if (isShown) byId("connection").textContent = "";
}

/** A sub-agent asks like the agent itself. */
function takeNested(event) {
  if (event.type === "approval_requested") approvals.add({ id: event.call_id, name: event.name, shown: event.shown });
  else if (event.call_id !== undefined) approvals.remove(event.call_id);
  else if (event.update?.type === "nested_event") takeNested(event.update.event);
}

/** Send what was typed: as a new prompt, or into the run. Whether the server took it. */
async function send(kind, text, images) {
  const input = images.length ? [...(text ? [{ type: "text", text }] : []), ...images.map(({ block }) => block)] : text;
  try {
    if (kind !== "send" && page.run !== null) {
      await ask("POST", `conversations/${page.id}/runs/${page.run}/${kind}`, { message: input });
      transcript.notice(kind === "steer" ? "Steered; it is read before the next step." : "Queued; it follows the answer.");
      return true;
    }
    page.isAtEnd = true;
    connection("sending");
    if (page.id === null) await begin();
    const { run_id: run } = await ask("POST", `conversations/${page.id}/runs`, { input }, { "idempotency-key": attemptKey() });
    listen(run);
    return true;
  } catch (error) {
    connection("");
    complain(error);
    return false;
  }
}

async function begin() {
  const { id } = await ask("POST", "conversations", {});
  page.id = id;
  place(id);
  await settings.adopt(id);
  sidebar.mark(id);
  drawHead();
}

async function stop() {
  if (page.run === null) return;
  try {
    await ask("POST", `conversations/${page.id}/runs/${page.run}/abort`, {});
  } catch (error) {
    complain(error);
  }
}

/** Send what was decided; a call that waited too long is answered too, and a new run goes on with it. */
async function answer(call, { approved, reason, chosen, rules }) {
  const body = { call_id: call.id, approved, ...(reason ? { reason } : {}), ...(chosen ? { arguments: chosen } : {}), ...(rules ? { rules } : {}) };
  const place = page.run === null ? "approvals" : `runs/${page.run}/approvals`;
  try {
    const { run_id: next } = await ask("POST", `conversations/${page.id}/${place}`, body);
    if (page.run === null) listen(next);
  } catch (error) {
    approvals.add(call);
    complain(error);
  }
}

/** Rewind to before a prompt, or fork after its answer: the conversation itself stays as it is. */
async function goBack(action, index, text) {
  const next = Array.from(byId("log").querySelectorAll(".prompt"), (node) => Number(node.dataset.index)).find((other) => other > index);
  await fork(action === "rewind" ? index : next);
  if (action === "rewind") {
    composer.fill(text);
    composer.focus();
  }
}

async function fork(at) {
  if (page.id === null) return;
  try {
    const { id } = await ask("POST", `conversations/${page.id}/fork`, at === undefined ? {} : { at });
    await open(id);
    await sidebar.refresh();
    drawHead();
    announce("A new conversation; the one before stays in the list.");
  } catch (error) {
    complain(error);
  }
}

async function remove() {
  if (page.id === null || !confirm("Delete this conversation for good?")) return;
  try {
    await ask("DELETE", `conversations/${page.id}`);
    await open(null);
    await sidebar.refresh();
  } catch (error) {
    complain(error);
  }
}

function complain(error) {
  transcript.notice(error.message, "failed");
}

function connection(state) {
  const words = { connected: "", sending: "Sending …", waiting: "The connection is lost; it is being tried again …" };
  const text = words[state] ?? "";
  if (byId("connection").textContent === text) return;
  const isBack = state === "connected" && byId("connection").textContent === words.waiting;
  byId("connection").textContent = text;
  if (isBack) announce("Connected again");
}

function drawHead() {
  const first = byId("log").querySelector(".prompt p")?.textContent.split("\n")[0].slice(0, 60);
  const title = (page.id !== null && (sidebar.titleOf(page.id) || first)) || "New conversation";
  byId("title").textContent = title;
  document.title = `${title} – swink`;
  for (const link of document.querySelectorAll(".export")) {
    link.hidden = page.id === null;
    link.href = address(`conversations/${page.id}/export?format=${link.id.split("-")[1]}`);
  }
  for (const id of ["fork", "delete"]) byId(id).hidden = page.id === null;
  drawFigures();
}

function drawFigures() {
  const { cost, isKnown, context } = transcript.totals;
  const window = settings.window;
  const share = window ? ` of ${tokens(window)} (${Math.round((context / window) * 100)} %)` : "";
  const spent = isKnown ? dollars(cost) : cost ? `at least ${dollars(cost)}` : "cost unknown";
  byId("figures").textContent = context ? `${spent} · ${tokens(context)}${share}` : "";
}

const scroll = byId("scroll");
scroll.addEventListener("scroll", () => {
  page.isAtEnd = isBelow();
  byId("down").hidden = page.isAtEnd;
}, { passive: true });
const isBelow = () => scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 40;
// What a person unfolds stays where it is.
byId("log").addEventListener("click", (event) => event.target.closest("summary") && (page.isAtEnd = false));
byId("down").addEventListener("click", toEnd);
onFlushed(() => (byId("hello").hidden = !transcript.isEmpty));
// After layout: what was not laid out before it came into sight has its size only now.
const follower = new ResizeObserver(() => {
  if (page.isAtEnd) scroll.scrollTop = scroll.scrollHeight;
  else byId("down").hidden = isBelow();
});
for (const id of ["log", "scroll"]) follower.observe(byId(id));

function toEnd() {
  page.isAtEnd = true;
  scroll.scrollTop = scroll.scrollHeight;
  composer.focus();
}

byId("fork").addEventListener("click", () => fork());
byId("delete").addEventListener("click", remove);
addEventListener("hashchange", () => open(location.hash.slice(1) || null));
settings.changed = drawFigures;
showTheme();
listenToKeys({
  find: () => sidebar.show(true),
  begin: () => open(null),
  approve: () => approvals.focus(),
  stop,
  isRunning: () => page.run !== null,
  prompt: () => composer.focus(),
  end: toEnd,
});
await sidebar.refresh();
document.body.dataset.ready = "";
await open(location.hash.slice(1) || null);
