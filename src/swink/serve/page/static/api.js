// Requests to the native door, and the events of a run, which go on where they broke off.

const base = new URL(".", location.href);
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
const SILENCE = 60_000;
const JSON_TYPE = { "content-type": "application/json" };

/** A request that the server did not do, and why. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The address of a path below the page. */
export const address = (path) => new URL(path, base).href;

/** Ask for something and give the JSON of the answer; raises `Refused`, also if nobody answers. */
export async function ask(method, path, body, headers = {}) {
  const given = body === undefined ? {} : { body: JSON.stringify(body), headers: { ...JSON_TYPE, ...headers } };
  let response;
  try {
    response = await fetch(address(path), { method, ...given });
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  if (!response.ok) throw await refusal(response);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** A word that names one attempt to send something, so that a repeated one is not done twice. */
export function attemptKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * The events of a run, each once and in order, however often the connection breaks.
 *
 * `tell(state)` hears "connected" and "waiting"; `signal` ends it.
 */
export async function* follow(path, signal, tell) {
  let last = 0;
  let ended = false;
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      for await (const { id, data } of stream(path, last, signal, tell)) {
        if (id <= last) continue;
        [last, wait] = [id, FIRST_WAIT];
        ended ||= data.type === "agent_end" || data.type === "result";
        yield data;
        if (data.type === "result") return;
      }
      if (ended) return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && error.status < 500) throw error;
      if (ended) return;
    }
    tell("waiting");
    await pause(wait, signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function* stream(path, last, signal, tell) {
  const silence = new AbortController();
  const either = AbortSignal.any([signal, silence.signal]);
  let watch = setTimeout(() => silence.abort(), SILENCE);
  try {
    const headers = { accept: "text/event-stream", ...(last ? { "last-event-id": String(last) } : {}) };
    const response = await fetch(address(path), { headers, signal: either, cache: "no-store" });
    if (!response.ok) throw await refusal(response);
    tell("connected");
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of chunksOf(response.body)) {
      clearTimeout(watch);
      watch = setTimeout(() => silence.abort(), SILENCE);
      const parts = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n\r?\n/);
      rest = parts.pop();
      for (const part of parts) {
        const event = parse(part);
        if (event !== null) yield event;
      }
    }
  } finally {
    clearTimeout(watch);
    silence.abort();
  }
}

async function* chunksOf(body) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(part) {
  let id = 0;
  const data = [];
  for (const line of part.split(/\r?\n/)) {
    if (line.startsWith("id:")) id = Number(line.slice(3));
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { id, data: JSON.parse(data.join("\n")) } : null;
}

async function refusal(response) {
  let message = response.statusText || `status ${response.status}`;
  try {
    const body = await response.json();
    message = body?.error?.message ?? body?.message ?? (typeof body?.error === "string" ? body.error : message);
  } catch {
    // The answer is not ours; its status says enough.
  }
  if (response.status === 401) message = `Open the address that the program printed: it lets this browser in. (${message})`;
  return new Refused(response.status, message);
}

/** Wait; shorter if the network is back or the page is looked at again. */
function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const events = [
      [window, "online"],
      [document, "visibilitychange"],
      [signal, "abort"],
    ];
    const done = () => {
      clearTimeout(timer);
      for (const [target, name] of events) target.removeEventListener(name, done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    for (const [target, name] of events) target.addEventListener(name, done);
  });
}
