// Elements made without HTML: what a model or a tool says only ever becomes text.

/** An element with properties (or attributes, or listeners as `onclick`) and children. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.startsWith("aria-")) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The element with an id, which the page has. */
export const byId = (id) => document.getElementById(id);

/** Tell those who listen to the page: at once if it cannot wait. */
export function announce(text, urgent = false) {
  const region = byId(urgent ? "alarm" : "announcer");
  region.replaceChildren(element("p", { textContent: text }));
}

const dirty = new Set();
let frame = 0;
const afterFrame = [];

/** Have `view.flush()` called once before the next frame, however often it is asked for. */
export function flushSoon(view) {
  dirty.add(view);
  if (!frame) frame = requestAnimationFrame(flushAll);
}

/** Call this after every frame in which something was flushed. */
export const onFlushed = (call) => afterFrame.push(call);

/** Flush what waits now: a page that is not in sight gets no frames. */
export function flushAll() {
  cancelAnimationFrame(frame);
  frame = 0;
  const views = [...dirty];
  dirty.clear();
  for (const view of views) view.flush();
  for (const call of afterFrame) call();
}
