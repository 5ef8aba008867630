"use strict";
(() => {
  // The rows are in the order of `_row` in pagedata.py. Text is only ever set as text: nothing in it becomes a tag.
  const [ID, NAME, STATE, SCORE, PASSED, TRIES, COST, TIME, TURNS, TOKENS, TAGS, FAILED, WHY, BEFORE, CHUNK, PLACE] = Array(16).keys();
  const STATES = ["passed", "failed", "error"], SIGNS = ["✓", "✗", "!"], WORDS = ["passed", "failed", "error"];
  const STEP = 60;
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = data.rows, repeated = rows.some(row => row[TRIES] > 1);
  const by = id => document.getElementById(id);
  const table = by("table"), filters = by("filters"), count = by("count"), more = by("more");

  function make(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === false || value === null || value === undefined) continue;
      if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
      else if (name === "class") made.className = value;
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
    return made;
  }

  /* Figures, as in figures.py. */
  const number = value => value.toLocaleString("en-US");
  function dollars(cost) {
    if (cost === null) return "–";
    if (cost === 0) return "$0";
    return cost >= 100 ? "$" + number(Math.round(cost)) : cost >= 0.995 ? "$" + cost.toFixed(2) : "$" + cost.toFixed(cost >= 0.01 ? 4 : Math.min(20, Math.max(4, 1 - Math.floor(Math.log10(cost)))));
  }
  function seconds(time) {
    if (time < 1) return Math.round(1000 * time) + " ms";
    if (time < 59.95) return time.toFixed(1) + " s";
    const whole = Math.round(time), minutes = Math.floor(whole / 60), two = n => String(n).padStart(2, "0");
    return minutes < 60 ? `${minutes} min ${two(whole % 60)} s` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  }

  /* Details are unpacked when a case is opened. */
  const packed = document.getElementsByClassName("chunk"), chunks = [], texts = [];
  function unpack(index) {
    chunks[index] ??= (async () => {
      const bytes = Uint8Array.from(atob(packed[index].textContent), letter => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      return JSON.parse(await new Response(stream).text());
    })();
    return chunks[index];
  }
  function strings(value) {
    if (typeof value === "string") return value;
    return value && typeof value === "object" ? Object.values(value).map(strings).filter(Boolean).join("\n") : "";
  }
  let reading = null;
  function read() {
    reading ??= (async () => {
      for (let index = 0; index < packed.length; index++) texts[index] = (await unpack(index)).map(item => strings(item).toLowerCase());
      reading = true;
    })();
    return reading;
  }

  /* What is shown: the address says it, so that plots, links and the filters all do the same. */
  const DEFAULTS = { status: "", tag: "", metric: "", change: "", q: "", sort: "" };
  let wanted = { ...DEFAULTS }, opened = "", shown = [], rendered = 0;
  const changeOf = row => !row[BEFORE] ? "new" : (row[STATE] === 0) === (row[BEFORE][0] === 0) ? "same" : row[STATE] === 0 ? "fixed" : "broke";
  const heads = rows.map(row => [row[ID], row[NAME], row[WHY], ...row[TAGS].map(tag => "#" + data.tags[tag])].join("\n").toLowerCase());

  function matches(row, index, tag, metric, words) {
    if (wanted.status && STATES[row[STATE]] !== wanted.status) return false;
    if (tag >= 0 && !row[TAGS].includes(tag)) return false;
    if (metric >= 0 && !row[FAILED].includes(metric)) return false;
    if (wanted.change && changeOf(row) !== wanted.change) return false;
    const text = texts[row[CHUNK]]?.[row[PLACE]] || "";
    return words.every(word => heads[index].includes(word) || text.includes(word));
  }
  const KEYS = {
    case: row => row[ID], score: row => row[SCORE], tries: row => row[PASSED] / row[TRIES], cost: row => row[COST],
    time: row => row[TIME], turns: row => row[TURNS], status: row => -row[STATE],
    change: row => ["broke", "same", "new", "fixed"].indexOf(changeOf(row)) * 10 + (row[BEFORE] && row[SCORE] !== null ? row[SCORE] - row[BEFORE][1] : 0),
  };
  function choose() {
    const words = wanted.q.toLowerCase().split(/\s+/).filter(Boolean);
    const tag = wanted.tag ? data.tags.indexOf(wanted.tag) : -1, metric = wanted.metric ? data.metrics.indexOf(wanted.metric) : -1;
    const isUnknown = (wanted.tag && tag < 0) || (wanted.metric && metric < 0);
    shown = isUnknown ? [] : rows.filter((row, index) => matches(row, index, tag, metric, words));
    const [, down, name] = /^(-?)(\w*)$/.exec(wanted.sort) || [], key = KEYS[name];
    if (key) {
      const sign = down ? -1 : 1, last = value => value === null || value === undefined;
      shown.sort((one, other) => {
        const a = key(one), b = key(other);
        if (last(a) || last(b)) return last(a) - last(b);
        return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
      });
    }
    if (words.length && reading !== true) {
      more.textContent = "Searching the transcripts…";
      read().then(() => { if (wanted.q) update(); }, () => { reading = true; update(); });
    }
  }

  /* The table. */
  const columns = [["case", "Case"], ["score", "Score"], ...(repeated ? [["tries", "Passed"]] : []), ["cost", "Cost"], ["time", "Time"],
    ["turns", "Turns"], ...(data.compared ? [["change", "Before"]] : [])];
  const body = make("tbody");
  function head() {
    table.tHead.replaceChildren(make("tr", null, ...columns.map(([key, name]) => {
      const isUp = wanted.sort === key, isDown = wanted.sort === "-" + key;
      const next = isDown ? key : isUp ? "" : key === "case" || key === "change" ? key : "-" + key;
      const click = () => go({ sort: key === "case" ? (isUp ? "-case" : isDown ? "" : "case") : next });
      return make("th", { scope: "col", class: key, "aria-sort": isUp ? "ascending" : isDown ? "descending" : null },
        make("button", { type: "button", on: { click } }, name + (isUp ? " ↑" : isDown ? " ↓" : "")));
    })));
  }
  function line(row) {
    const meter = make("span", { class: "meter" }, make("i"));
    meter.firstChild.style.width = 100 * (row[SCORE] || 0) + "%";
    const button = make("button", { type: "button", class: "open", "aria-expanded": "false" },
      make("span", { class: "sign", title: WORDS[row[STATE]], "aria-label": WORDS[row[STATE]] }, SIGNS[row[STATE]]),
      make("span", null, make("b", null, row[ID]), row[NAME] ? make("span", { class: "name" }, row[NAME]) : "",
        ...row[TAGS].map(tag => make("span", { class: "tag" }, data.tags[tag])), row[WHY] ? make("span", { class: "why" }, row[WHY]) : ""));
    const cells = {
      score: row[SCORE] === null ? ["–"] : [meter, row[SCORE].toFixed(2)],
      tries: [`${row[PASSED]}/${row[TRIES]}`], cost: [dollars(row[COST])], time: [seconds(row[TIME])], turns: [String(row[TURNS])],
      change: data.compared ? [moved(row)] : [],
    };
    const made = make("tr", { class: "case " + STATES[row[STATE]] }, make("td", null, button),
      ...columns.slice(1).map(([key, name]) => make("td", { class: key, "data-name": name.toLowerCase() }, ...cells[key])));
    made.row = row;
    return made;
  }
  function moved(row) {
    const change = changeOf(row);
    if (change === "new") return make("span", { class: "moved" }, "new");
    const before = row[BEFORE], delta = row[SCORE] !== null && before[1] !== null ? row[SCORE] - before[1] : 0;
    const difference = Math.abs(delta) >= 0.005 ? ` ${delta > 0 ? "+" : "−"}${Math.abs(delta).toFixed(2)}` : "";
    return make("span", { class: "moved " + change }, WORDS[before[0]] + difference);
  }
  function extend(until) {
    const end = Math.min(shown.length, until ?? rendered + STEP);
    const part = document.createDocumentFragment();
    for (; rendered < end; rendered++) part.append(line(shown[rendered]));
    body.append(part);
    if (!(wanted.q && reading !== true)) more.textContent = rendered < shown.length ? `${number(shown.length - rendered)} more below` : "";
  }
  function update() {
    const last = shown, focused = document.activeElement?.closest("tr.case")?.row;
    choose();
    head();
    if (last.length === shown.length && last.every((row, index) => row === shown[index])) extend(0);
    else {
      body.replaceChildren();
      rendered = 0;
      extend();
      if (focused) [...body.children].find(made => made.row === focused)?.querySelector(".open").focus();
    }
    const are = shown.length === rows.length ? `${number(rows.length)} cases` : `${number(shown.length)} of ${number(rows.length)} cases`;
    count.textContent = rows.length ? are : "No cases.";
    if (Object.values(wanted).some(Boolean)) count.append(" · ", make("a", { href: "#" }, "clear filters"));
    reflect();
  }
  new IntersectionObserver(entries => { if (entries[0].isIntersecting && rendered < shown.length) extend(); }, { rootMargin: "900px" }).observe(more);
  body.addEventListener("click", event => {
    const row = event.target.closest("tr.case");
    if (row && !getSelection().toString()) toggle(row);
  });
  async function toggle(row, scroll) {
    const button = row.querySelector(".open"), after = row.nextElementSibling;
    if (row.classList.contains("opened")) {
      row.classList.remove("opened");
      button.setAttribute("aria-expanded", "false");
      if (after?.classList.contains("details")) after.remove();
      if (opened === row.row[ID]) { opened = ""; address(); }
      return;
    }
    row.classList.add("opened");
    button.setAttribute("aria-expanded", "true");
    opened = row.row[ID];
    address();
    const cell = make("td", { colspan: columns.length }), details = make("tr", { class: "details" }, cell);
    row.after(details);
    try {
      cell.append(inside((await unpack(row.row[CHUNK]))[row.row[PLACE]], row.row));
    } catch {
      cell.append(make("p", { class: "note" }, "The details could not be unpacked: this browser is too old, or the file is damaged. They are in results.jsonl."));
    }
    if (scroll) row.scrollIntoView({ block: "start" });
  }

  /* The inside of a row. */
  function inside(details, row) {
    const made = make("div", { class: "inside" }), attempts = details.attempts, place = make("div");
    const first = Math.max(0, attempts.findIndex(attempt => !attempt.passed));
    const buttons = attempts.map((attempt, index) => make("button", { type: "button", class: attempt.passed ? "passed" : "failed", on: { click: () => choose(index) } },
      make("span", { class: "sign" }, attempt.passed ? "✓" : "✗"), `Attempt ${index + 1}`));
    function choose(index) {
      buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === index)));
      const earlier = details.earlier ?? [];
      place.replaceChildren(...attemptParts(attempts[index], details, earlier[index] ?? earlier[0]));
    }
    if (attempts.length > 1) made.append(make("div", { class: "attempts", role: "group", "aria-label": "Attempts" }, ...buttons));
    made.append(place);
    choose(first);
    return made;
  }
  function* attemptParts(attempt, details, earlier) {
    const facts = [attempt.model, `ended: ${attempt.stop}`, `${number(attempt.tokens[0])} tokens in, ${number(attempt.tokens[1])} out`,
      attempt.cost === null ? "cost unknown" : dollars(attempt.cost), seconds(attempt.time), attempt.cached ? "from the cache" : "", details.place];
    yield make("p", { class: "facts" }, facts.filter(Boolean).join(" · "));
    if (attempt.error) yield make("p", { class: "trouble" }, make("b", null, (attempt.source ? `Error (${attempt.source}): ` : "Error: ")), attempt.error);
    if (attempt.reason) yield make("p", { class: "trouble" }, make("b", null, "Stopped: "), attempt.reason);
    if (details.before?.length) yield make("details", null, make("summary", null, "Why it did not pass before"), make("div", { class: "body" }, ...details.before.map(why => make("pre", null, why))));
    yield make("h3", null, "Metrics");
    yield attempt.metrics.length ? make("div", null, ...attempt.metrics.map(metric => metricLine(metric, earlier?.values[metric[0]]))) : make("p", { class: "note" }, "No metric applied, so the attempt has not passed.");
    yield make("h3", null, "Transcript");
    if (earlier) yield* beside(earlier.talk, attempt.talk);
    else yield attempt.talk.length ? talk(attempt.talk) : make("p", { class: "usage" }, "Nothing was said.");
    if (attempt.tree) yield folded("", ["Times, tokens and money"], make("pre", null, attempt.tree));
  }
  const talk = rows => make("div", { class: "talk" }, ...rows.map(said));

  /* Two transcripts: what is alike once, then the first difference, then each on its side. */
  const words = row => row[0] === "tool" ? [row[1], ...row[5].map(([name, text]) => `${name}: ${text}`), row[7], row[6]].filter(Boolean).join("\n") : row[1];
  function* beside(before, now) {
    const counts = rows => rows.map((row, place) => [row, place]).filter(([row]) => row[0] !== "usage");
    const was = counts(before), is = counts(now);
    let alike = 0;
    while (alike < was.length && alike < is.length && was[alike][0][0] === is[alike][0][0] && words(was[alike][0]) === words(is[alike][0])) alike++;
    if (alike === was.length && alike === is.length) {
      yield make("p", { class: "usage" }, `Word for word as in ${data.baseline}.`);
      if (now.length) yield talk(now);
      return;
    }
    const left = was[alike], right = is[alike];
    if (alike) yield folded("", [make("b", null, alike === 1 ? "The first step is the same" : `The first ${alike} steps are the same`)], talk(now.slice(0, right ? right[1] : now.length)));
    yield make("section", { class: "first", "aria-label": "First difference" }, make("h4", null, "First difference"), ...firstOf(left?.[0], right?.[0]));
    const side = (name, kind, rows) => make("section", { class: "side " + kind, "aria-label": name }, make("h4", null, name),
      rows.length ? talk(rows) : make("p", { class: "usage" }, "Nothing more was said."));
    yield make("div", { class: "sides" }, side(data.baseline, "was", before.slice(left ? left[1] : before.length)), side("This run", "is", now.slice(right ? right[1] : now.length)));
  }
  const NAMES = { prompt: "the user", reply: "the agent", thinking: "thinking", system: "system prompt", tool: "tool", failed: "failure", note: "note" };
  function firstOf(left, right) {
    const one = left ? words(left) : "", other = right ? words(right) : "", most = Math.min(one.length, other.length);
    let start = 0, end = 0;
    while (start < most && one[start] === other[start]) start++;
    while (start && /\w/.test(one[start - 1] ?? "") && /\w/.test(one[start] ?? other[start] ?? "")) start--;
    while (end < most - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end++;
    while (end && /\w/.test(one[one.length - end] ?? "") && /\w/.test(one[one.length - end - 1] ?? "")) end--;
    const excerpt = (tag, text) => {
      const from = Math.max(0, start - 60), to = Math.min(text.length, text.length - end + 60), middle = text.slice(start, text.length - end);
      return [from ? "…" : "", text.slice(from, start), make(tag, null, middle.length > 400 ? middle.slice(0, 400) + "…" : middle || " "), middle.length > 400 ? "" : text.slice(text.length - end, to), to < text.length && middle.length <= 400 ? "…" : ""];
    };
    return [["was", left, one, "del", data.baseline], ["is", right, other, "ins", "This run"]].map(([kind, row, text, tag, name]) => make("div", { class: kind },
      make("span", { class: "label" }, row ? `${name} · ${NAMES[row[0]] ?? row[0]}${row[0] === "tool" ? " " + row[1] : ""}` : name),
      make("p", null, ...(row ? excerpt(tag, text) : ["Nothing more was said."]))));
  }
  function metricLine([name, value, threshold, passed, why, error, verdicts], was) {
    const track = make("span", { class: "track" }, make("i"), make("u"));
    track.firstChild.style.width = 100 * value + "%";
    track.lastChild.style.left = `calc(${100 * threshold}% - 1px)`;
    const judged = verdicts.map(([judge, given, reason]) => make("span", { class: "verdict" }, `${judge}: ${given.toFixed(2)}${reason ? " – " + reason : ""}`));
    return make("div", { class: "metric " + (error ? "error" : passed ? "passed" : "failed") },
      make("span", { class: "sign", "aria-label": passed ? "passed" : "failed" }, error ? "!" : passed ? "✓" : "✗"), make("span", null, name), track,
      make("span", null, value.toFixed(2), make("span", { class: "of" }, ` of ${threshold.toFixed(2)}${was === undefined || Math.abs(was - value) < 0.005 ? "" : `, was ${was.toFixed(2)}`}`)),
      make("span", { class: "why" }, error ? `could not be scored: ${error}` : why, ...judged));
  }
  function said(row) {
    const [kind, text] = row;
    switch (kind) {
      case "prompt": return make("div", { class: "said" }, text);
      case "reply": return prose(text);
      case "system": return folded("", ["System prompt"], make("pre", null, text));
      case "thinking": return folded("", ["Thinking"], prose(text));
      case "tool": return tool(row);
      case "failed": return make("p", { class: "trouble" }, text);
      case "usage": return make("p", { class: "usage" }, text);
      default: return make("p", { class: "note" }, text);
    }
  }
  function folded(kind, summary, ...parts) {
    return make("details", { class: kind }, make("summary", null, ...summary), make("div", { class: "body" }, ...parts));
  }
  function tool([, name, gist, state, took, given, result, diff]) {
    const isGood = state === "done", parts = [];
    for (const [argument, text] of given) {
      if (text.length < 120 && !text.includes("\n")) parts.push(make("div", { class: "given" }, make("span", null, argument), make("code", null, text)));
      else parts.push(make("div", { class: "label" }, argument), make("pre", null, text));
    }
    if (diff) parts.push(changes(diff));
    if (result) parts.push(make("div", { class: "label" }, "Result"), make("pre", null, result));
    return folded(isGood ? "" : "bad", [make("span", { class: "sign" }, isGood ? "✓" : "✗"), make("b", null, name), make("span", { class: "gist" }, gist),
      isGood ? "" : make("span", { class: "state" }, state), took === null ? "" : make("span", { class: "took" }, seconds(took))], ...(parts.length ? parts : ["(no result)"]));
  }
  function changes(diff) {
    return make("pre", null, ...diff.split("\n").map(text => make("span", { class: text[0] === "+" ? "plus" : text[0] === "-" ? "minus" : "" }, text + "\n")));
  }

  /* Markdown, the few marks of it that help to read: fences, headings, lists, code, bold. */
  function prose(text) {
    const made = make("div", { class: "prose" });
    let list = null, paragraph = [];
    const flush = () => { if (paragraph.length) made.append(make("p", null, ...inline(paragraph.join("\n")))); paragraph = []; };
    const lines = text.split("\n");
    for (let at = 0; at < lines.length; at++) {
      const now = lines[at], fence = /^\s*(```+|~~~+)/.exec(now), heading = /^#{1,6}\s+(.*)/.exec(now), item = /^\s{0,6}([-*+]|\d{1,3}[.)])\s+(.*)/.exec(now);
      if (!item) list = null;
      if (fence) {
        flush();
        let end = at + 1;
        while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end++;
        made.append(make("pre", { tabindex: "0" }, lines.slice(at + 1, end).join("\n")));
        at = end;
      } else if (heading) { flush(); made.append(make("h4", null, ...inline(heading[1]))); }
      else if (item) {
        flush();
        const tag = /\d/.test(item[1]) ? "ol" : "ul";
        if (!list || list.localName !== tag) { list = make(tag, tag === "ol" ? { start: parseInt(item[1], 10) } : null); made.append(list); }
        list.append(make("li", null, ...inline(item[2])));
      } else if (now.trim()) paragraph.push(now);
      else flush();
    }
    flush();
    return made;
  }
  function inline(text) {
    return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map(part =>
      /^`[^`]+`$/.test(part) ? make("code", null, part.slice(1, -1)) : /^\*\*[^*]+\*\*$/.test(part) ? make("strong", null, part.slice(2, -2)) : part);
  }

  /* Filters and the address. */
  const states = make("div", { class: "states", role: "group", "aria-label": "Status" });
  const search = make("input", { type: "search", placeholder: "Search cases and transcripts", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
  const selects = {};
  let typed = 0; // the timer of words that are typed but not yet looked for: nothing may put others in their place
  function select(key, name, options) {
    if (!options.length) return "";
    selects[key] = make("select", { "aria-label": name, class: key === "sort" ? "only-narrow" : "", on: { change: event => go({ [key]: event.target.value }) } },
      make("option", { value: "" }, name), ...options.map(([value, text]) => make("option", { value }, text)));
    return selects[key];
  }
  function setUp() {
    const counts = STATES.map((_, state) => rows.filter(row => row[STATE] === state).length);
    for (const [value, name, total] of [["", "All", rows.length], ["passed", "Passed", counts[0]], ["failed", "Failed", counts[1]], ["error", "Errors", counts[2]]]) {
      if (value === "error" && !total) continue;
      states.append(make("button", { type: "button", value, on: { click: () => go({ status: value }) } }, name, make("b", null, number(total))));
    }
    const kinds = [["broke", "Newly failing"], ["fixed", "Newly passing"], ["same", "Same as before"], ["new", "New cases"]];
    const sorts = [["-status", "Failures last"], ["status", "Failures first"], ["score", "Lowest score"], ["-score", "Highest score"], ["-cost", "Most expensive"], ["-time", "Slowest"]];
    filters.append(search, states, select("tag", "All tags", data.tags.map(tag => [tag, tag])),
      select("metric", "All metrics", data.metrics.map(metric => [metric, "failed: " + metric])),
      data.compared ? select("change", "All changes", kinds) : "", select("sort", "In order of the suite", sorts));
    search.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => go({ q: search.value.trim() }), 120); });
    for (const part of [filters, table, by("theme")]) part.hidden = false;
    table.append(body);
  }
  function reflect() {
    for (const button of states.children) button.setAttribute("aria-pressed", String(button.value === wanted.status));
    for (const [key, made] of Object.entries(selects)) { made.value = wanted[key]; made.classList.toggle("on", Boolean(wanted[key])); }
    if (!typed && search.value.trim() !== wanted.q) search.value = wanted.q;
  }
  function address() {
    const said = new URLSearchParams(Object.entries({ ...wanted, case: opened }).filter(([, value]) => value));
    try { history.replaceState(null, "", "#" + said); } catch { /* then the address stays as it is */ }
  }
  function settle() { clearTimeout(typed); typed = 0; }
  function go(change) { if ("q" in change) settle(); Object.assign(wanted, change); opened = ""; address(); update(); }
  function follow(isFirst) {
    const said = new URLSearchParams(location.hash.slice(1)), id = said.get("case");
    if (!isFirst && location.hash === "#cases") return;
    settle();
    wanted = { ...DEFAULTS };
    for (const key of Object.keys(DEFAULTS)) wanted[key] = said.get(key) || "";
    update();
    if (id !== null) {
      let index = shown.findIndex(row => row[ID] === id);
      if (index < 0) { wanted = { ...DEFAULTS }; update(); index = shown.findIndex(row => row[ID] === id); }
      if (index >= 0) {
        if (rendered <= index) extend(index + 10);
        const found = body.querySelectorAll("tr.case")[index];
        if (found.classList.contains("opened")) found.scrollIntoView({ block: "start" }); else toggle(found, true);
      }
    } else if (!isFirst && location.hash.length > 1) by("cases").scrollIntoView({ block: "start" });
  }
  addEventListener("hashchange", () => follow(false));

  addEventListener("keydown", event => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); search.focus(); search.select(); }
    if (event.key === "Escape" && event.target === search) { search.value = ""; go({ q: "" }); }
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.matches(".open, #filters input")) {
      const lines = [...body.querySelectorAll(".open")], at = lines.indexOf(event.target), next = lines[at + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) { event.preventDefault(); next.focus(); next.scrollIntoView({ block: "nearest" }); }
    }
  });
  addEventListener("beforeprint", () => extend(1000));

  const theme = by("theme"), themes = ["auto", "light", "dark"];
  let chosen = "auto";
  try { chosen = localStorage.getItem("swink-theme") || "auto"; } catch { /* a page from a file may have no storage */ }
  function dress() {
    if (!themes.includes(chosen)) chosen = "auto";
    if (chosen === "auto") document.documentElement.removeAttribute("data-theme"); else document.documentElement.dataset.theme = chosen;
    theme.textContent = `Theme: ${chosen}`;
  }
  theme.addEventListener("click", () => {
    chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
    try { localStorage.setItem("swink-theme", chosen); } catch { /* then it holds for this visit */ }
    dress();
  });

  dress();
  setUp();
  follow(true);
})();
