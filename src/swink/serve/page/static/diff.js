// Two texts side by side, line by line; on a narrow screen below each other.

import { element } from "./dom.js";

const MOST_STEPS = 500;
const AROUND = 3;

/** The rows that turn one text into the other: `[old, new]`, null where a side has no line. */
export function compare(old, fresh) {
  const before = linesOf(old);
  const after = linesOf(fresh);
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < before.length - start && end < after.length - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const rows = before.slice(0, start).map((line) => [line, line]);
  rows.push(...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)));
  rows.push(...before.slice(before.length - end).map((line) => [line, line]));
  return rows;
}

/** Two texts as a table of rows, with a few lines around what changed; null if nothing did. */
export function sideBySide(old, fresh, label) {
  const rows = compare(old, fresh);
  const isChanged = rows.map(([left, right]) => left !== right);
  if (!isChanged.includes(true)) return null;
  const near = rows.map(() => false);
  isChanged.forEach((changed, index) => {
    if (changed) near.fill(true, Math.max(0, index - AROUND), index + AROUND + 1);
  });
  const body = element("tbody");
  let [left, right, skipped] = [0, 0, false];
  rows.forEach(([before, after], index) => {
    if (before !== null) left += 1;
    if (after !== null) right += 1;
    if (near[index]) body.append(row(before, after, left, right, isChanged[index]));
    else if (!skipped) body.append(element("tr", { className: "gap" }, element("td", { colSpan: 4, textContent: "⋯" })));
    skipped = !near[index];
  });
  const head = ["Line", "Before", "Line", "After"].map((textContent) => element("th", { scope: "col", textContent }));
  const table = element("table", { className: "diff", "aria-label": label }, element("thead", {}, element("tr", {}, ...head)), body);
  return element("div", { className: "sides", tabIndex: 0, role: "region", "aria-label": label }, table);
}

/** How many lines are new and how many are gone. */
export function counts(old, fresh) {
  const changed = compare(old, fresh).filter(([left, right]) => left !== right);
  return [changed.filter(([, right]) => right !== null).length, changed.filter(([left]) => left !== null).length];
}

const linesOf = (text) => (text ? text.replace(/\n$/, "").split("\n") : []);

function row(before, after, left, right, isChanged) {
  const cells = [
    element("td", { className: "number", textContent: before === null ? "" : left }),
    element("td", { className: before === null ? "empty" : isChanged ? "old" : "same" }, element("code", { textContent: before ?? "" })),
    element("td", { className: "number", textContent: after === null ? "" : right }),
    element("td", { className: after === null ? "empty" : isChanged ? "new" : "same twin" }, element("code", { textContent: after ?? "" })),
  ];
  return element("tr", { className: isChanged ? "changed" : "" }, ...cells);
}

/** Where the lines differ: what stays is found in at most `MOST_STEPS` edits, else all of it is new. */
function middle(before, after) {
  const trail = edits(before, after);
  if (trail === null) return paired(before, after);
  const rows = [];
  let [gone, added] = [[], []];
  for (const [left, right] of trail) {
    if (left !== null && right !== null) {
      rows.push(...paired(gone, added), [left, right]);
      [gone, added] = [[], []];
    } else if (left !== null) gone.push(left);
    else added.push(right);
  }
  return [...rows, ...paired(gone, added)];
}

function paired(gone, added) {
  const count = Math.max(gone.length, added.length);
  return Array.from({ length: count }, (_, index) => [gone[index] ?? null, added[index] ?? null]);
}

/** Myers' shortest edit script. */
function edits(before, after) {
  const furthest = new Map([[1, 0]]);
  const trace = [];
  for (let step = 0; step <= Math.min(before.length + after.length, MOST_STEPS); step += 1) {
    trace.push(new Map(furthest));
    for (let way = -step; way <= step; way += 2) {
      const isDown = way === -step || (way !== step && furthest.get(way - 1) < furthest.get(way + 1));
      let left = isDown ? furthest.get(way + 1) : furthest.get(way - 1) + 1;
      while (left < before.length && left - way < after.length && before[left] === after[left - way]) left += 1;
      furthest.set(way, left);
      if (left >= before.length && left - way >= after.length) return walkBack(trace, before, after);
    }
  }
  return null;
}

function walkBack(trace, before, after) {
  const found = [];
  let [left, right] = [before.length, after.length];
  for (let step = trace.length - 1; step >= 0; step -= 1) {
    const furthest = trace[step];
    const way = left - right;
    const isDown = way === -step || (way !== step && furthest.get(way - 1) < furthest.get(way + 1));
    const from = isDown ? furthest.get(way + 1) : furthest.get(way - 1);
    const fromRight = from - (isDown ? way + 1 : way - 1);
    while (left > from && right > fromRight && left > 0 && right > 0) {
      left -= 1;
      right -= 1;
      found.push([before[left], after[right]]);
    }
    if (step > 0) found.push(isDown ? [null, after[fromRight]] : [before[from], null]);
    [left, right] = [from, fromRight];
  }
  return found.reverse();
}
