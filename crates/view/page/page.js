"use strict";
// The page of a run. A saved page has its data in the element `saved`; otherwise the data come from the server, about once a
// second. Text of the run becomes text nodes alone, never markup.

const STATES = ["failed", "waiting", "running", "starting", "awaited", "ended", "done"];
const OVER = new Set(["done", "failed", "interrupted", "lost"]);
const INTERVAL = 1000;      // milliseconds between two looks
const RATE_LOOKS = 4;       // looks over which rates are averaged: instances report less often than once a second
const MOST_SAMPLES = 600;   // of the history; then every other one goes
const MOST_ROWS = 100;      // of a table

const saved = JSON.parse(document.getElementById("saved").textContent);
let facts, state;
let looks = [];             // the last states, for rates
let history = [];           // {seconds, messages, counts}
let order = { column: null, falling: true };
let log = { key: null, text: null };

const at = (selector) => document.querySelector(selector);

/** An element with properties and children; texts become text nodes. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text in which what stands between two grave accents is a command. */
function withCode(text) {
  return text.split("`").map((part, place) => place % 2 ? make("code", {}, part) : part);
}

/** Sets a text only if it is another one, so that a screen reader and a selection are left alone. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Units, as the command prints them.

function count(number) { return number.toLocaleString("en", { maximumFractionDigits: 0 }); }

function scaled(number, units, base) {
  let unit = 0;
  while (Math.abs(number) >= base && unit < units.length - 1) { number /= base; unit += 1; }
  const digits = unit === 0 || number >= 100 ? 0 : number >= 10 ? 1 : 2;
  return `${number.toFixed(digits)} ${units[unit]}`;
}

function bytes(number) { return scaled(number, ["B", "kB", "MB", "GB", "TB", "PB"], 1000); }

function memory(number) { return scaled(number, ["B", "KiB", "MiB", "GiB", "TiB"], 1024); }

function seconds(time) {
  if (time === 0) return "0 s";
  if (time < 1e-3) return `${(time * 1e6).toPrecision(3)} µs`;
  if (time < 1) return `${(time * 1e3).toPrecision(3)} ms`;
  if (time < 60) return `${time.toPrecision(3)} s`;
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  if (time < 3600) return `${Math.floor(time / 60)} min ${two(time % 60)} s`;
  if (time < 86400) return `${Math.floor(time / 3600)} h ${two(time / 60 % 60)} min`;
  return `${Math.floor(time / 86400)} d ${two(time / 3600 % 24)} h`;
}

function number(value) { return Number(value.toPrecision(6)).toString(); }

function rate(value) { return value < 10 && value > 0 ? value.toPrecision(2) : count(value); }

function percent(share) { return `${(100 * share).toFixed(0)} %`; }

// Figures of several instances.

function sum(list, of) { return list.reduce((total, item) => total + (of(item) ?? 0), 0); }

// By pairs, since a call takes no more than about 100,000 arguments.
function smallest(numbers) { return numbers.reduce((a, b) => Math.min(a, b)); }

function largest(numbers) { return numbers.reduce((a, b) => Math.max(a, b)); }

function known(list, of) { return list.map(of).filter((value) => value !== undefined && value !== null); }

function stateCounts(instances) {
  const counts = {};
  for (const instance of instances) counts[instance.state] = (counts[instance.state] ?? 0) + 1;
  return counts;
}

/** The instances of each component, with their names. */
function members() {
  const list = facts.components.map((name) => ({ name, instances: [] }));
  facts.instances.forEach(([name, component], place) => {
    list[component].instances.push({ name, component, place, ...state.instances[place] });
  });
  return list;
}

/** Messages and bytes per second of the instances at some places, over the last looks. */
function rates(places) {
  const first = looks[0], last = looks[looks.length - 1];
  if (looks.length < 2 || last.seconds <= first.seconds) return null;
  const grown = (key) => sum(places, (place) => (last.instances[place]?.[key] ?? 0) - (first.instances[place]?.[key] ?? 0));
  const time = last.seconds - first.seconds;
  return { messages: Math.max(0, grown("messages") / time), bytes: Math.max(0, grown("bytes") / time) };
}

// The parts of the page.

/** A bar of parts, each with the class of its colour and its share. */
function makeBar(parts) {
  const bar = make("div", { className: "bar" });
  bar.setAttribute("aria-hidden", "true");
  for (const [name, share] of parts) {
    const part = make("i", { className: name });
    part.style.width = `${100 * share}%`;
    bar.append(part);
  }
  return bar;
}

function stateBar(counts, total) {
  return makeBar(STATES.filter((name) => counts[name]).map((name) => [name, counts[name] / total]));
}

function stateText(counts) {
  return STATES.filter((name) => counts[name]).map((name) => `${count(counts[name])} ${name}`).join(", ");
}

function showHeader() {
  const all = state.instances;
  const phase = at("#phase");
  setText(phase, state.phase);
  phase.className = `pill ${state.phase}`;
  document.title = `${facts.model}: ${state.phase}`;
  setText(at("#model"), facts.model);
  setText(at("#clock"), state.seconds === null ? "" : seconds(state.seconds));
  setText(at("#place"), [facts.host && `on ${facts.host}`, facts.directory].filter(Boolean).join(" · "));
  const now = OVER.has(state.phase) ? null : rates(all.map((_, place) => place));
  const per = (figure, unit) => now ? make("small", {}, ` ${figure(now)}${unit}`) : null;
  const processes = processesOf(all);
  const busy = known(processes, (one) => one.load), resident = known(processes, (one) => one.memory);
  const spent = known(processes, (one) => one.seconds);
  const tiles = [
    ["Instances", count(all.length), make("small", {}, ` of ${count(facts.components.length)} component${facts.components.length === 1 ? "" : "s"}`)],
    ["Messages", count(sum(all, (one) => one.messages)), per((now) => rate(now.messages), "/s")],
    ["Bytes", bytes(sum(all, (one) => one.bytes)), per((now) => bytes(now.bytes), "/s")],
    busy.length ? ["Processor", percent(sum(busy, (x) => x)), make("small", {}, " of a core")]
      : spent.length ? ["Processor time", seconds(sum(spent, (x) => x)), null] : null,
    resident.length ? [OVER.has(state.phase) ? "Peak memory" : "Memory", memory(sum(resident, (x) => x)), make("small", {}, ` in ${count(processes.length)} process${processes.length === 1 ? "" : "es"}`)] : null,
  ];
  at("#totals").replaceChildren(...tiles.filter(Boolean).map(([name, value, more]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value, more))));
}

function showReport() {
  at("#report").hidden = !state.report;
  if (state.report) setText(at("#report pre"), state.report);
}

/** Puts a picture into a shadow tree, where its rules of style are its own. */
function putPicture(host, text) {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const picture = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  const sheets = [...picture.querySelectorAll("style")].map((style) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style.textContent);
    style.remove();
    return sheet;
  });
  const marks = new CSSStyleSheet();
  marks.replaceSync(MARKS);
  root.adoptedStyleSheets = [...sheets, marks];
  root.replaceChildren(document.importNode(picture, true));
  return root;
}

// What is drawn over the picture of the model: the state of a component, and conduits on which instances wait.
const MARKS = `
  svg{max-width:none}
  g[data-state] > .box{stroke-width:2.5}
  g[data-state=running] > .box{stroke:var(--running)} g[data-state=waiting] > .box{stroke:var(--waiting)}
  g[data-state=failed] > .box{stroke:var(--failed);stroke-width:3.5} g[data-state=done] > .box{stroke:var(--done)}
  g[data-waited] .line{stroke-width:3.5;stroke-dasharray:7 4}
`;

/** The state that stands for several instances: one that failed, else the most frequent of those that are not done. */
function mainState(counts) {
  if (counts.failed) return "failed";
  const going = STATES.filter((name) => name !== "done" && counts[name]);
  return going.sort((a, b) => counts[b] - counts[a])[0] ?? "done";
}

/** Writes the messages per second above the box of a component. */
function writeRate(group, rate) {
  const box = group.querySelector(":scope > .box:not(.behind)");
  if (!box) return;
  let text = group.querySelector(":scope > .rate");
  if (!text) {
    const [x, y, width] = ["x", "y", "width"].map((name) => Number(box.getAttribute(name)));
    text = svg("text", { class: "rate faint", x: x + width / 2, y: y - 6, "text-anchor": "middle" });
    group.append(text);
  }
  setText(text, rate === null ? "" : `${rate}/s`);
}

function markGraph(groups) {
  const root = at("#graph .scroll").shadowRoot;
  if (!root) return;
  const boxes = new Map([...root.querySelectorAll("g[data-name]")].map((box) => [box.dataset.name, box]));
  for (const { name, instances } of groups) {
    const box = boxes.get(name);
    if (!box || !instances.length) continue;
    box.setAttribute("data-state", mainState(stateCounts(instances)));
    writeRate(box, rateCell(instances));
  }
  const waited = new Set(state.waits.map((wait) => `${wait.from} ${wait.to}`));
  for (const line of root.querySelectorAll("g[data-from]")) {
    const is = line.dataset.to.split(" ").some((to) => waited.has(`${line.dataset.from} ${to}`));
    line.toggleAttribute("data-waited", is);
  }
}

function showGraph() {
  const section = at("#graph");
  section.querySelector(".note").replaceChildren(...withCode(facts.graph_note ?? ""));
  section.querySelector(".note").hidden = !facts.graph_note;
  const host = section.querySelector(".scroll");
  host.hidden = !facts.graph;
  if (facts.graph) putPicture(host, facts.graph);
  const key = (name, text) => make("span", { className: `key ${name}` }, make("i"), text);
  at("#legend").replaceChildren(key("running", "running"), key("waiting", "waiting for a peer"), key("done", "done"), key("failed", "failed"),
    ...(OVER.has(state.phase) ? [] : [make("span", { className: "key" }, "above a box: messages sent per second"),
      make("span", { className: "key" }, "a dashed line: instances wait on the conduit now")]));
}

function showTimes() {
  at("#times").hidden = !facts.times;
  if (!facts.times) return;
  putPicture(at("#times .scroll"), facts.times);
  at("#times .note").replaceChildren(...withCode(facts.times_note ?? ""));
}

/** Fills a table. Each column has a title, a cell of a row, and whether it is a figure. Columns without any content are left out. */
function fillTable(table, columns, rows, sorting) {
  const cells = rows.map((row) => columns.map((column) => column.cell(row)));
  const isUsed = ({ column, place }) => column.always || cells.some((row) => row[place] !== null && row[place] !== "");
  const used = columns.map((column, place) => ({ column, place })).filter(isUsed);
  const head = make("tr", {}, ...used.map(({ column }) => {
    const cell = make("th", { scope: "col", className: column.figure ? "figure" : "" });
    if (!sorting || !column.value) { cell.append(column.title); return cell; }
    const button = make("button", { type: "button", onclick: () => sorting(column.title) }, column.title);
    if (order.column === column.title) cell.setAttribute("aria-sort", order.falling ? "descending" : "ascending");
    cell.append(button);
    return cell;
  }));
  const body = cells.map((row) => make("tr", {}, ...used.map(({ column, place }) => {
    const cell = make("td", { className: column.figure ? "figure" : column.wide ? "wide" : "" });
    const content = row[place];
    if (Array.isArray(content)) cell.append(...content); else if (content !== null) cell.append(content);
    return cell;
  })));
  // A button that has the focus keeps it.
  const focused = table.contains(document.activeElement) ? document.activeElement.textContent : null;
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
  if (focused) [...table.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
}

function simulatedCell(instances) {
  const times = known(instances, (one) => one.simulated);
  if (!times.length) return null;
  const [low, high] = [smallest(times), largest(times)];
  const text = low === high ? number(low) : `${number(low)} to ${number(high)}`;
  const ends = known(instances, (one) => one.end > 0 ? one.end : null);
  if (!ends.length) return text;
  const part = Math.min(1, low / largest(ends));
  return [`${text} (${percent(part)})`, makeBar([["running", part]])];
}

function timesCell(instances) {
  const times = known(instances, (one) => one.times);
  const total = sum(times, (one) => one.total);
  if (total <= 0) return null;
  const shares = [["running", "computes", "compute"], ["waiting", "waits", "waiting"], ["sending", "sends", "sending"]]
    .map(([colour, word, key]) => ({ colour, word, share: sum(times, (one) => one[key]) / total }));
  const text = shares.filter(({ share }) => share >= 0.005).map(({ word, share }) => `${word} ${percent(share)}`).join(", ");
  return [text, makeBar(shares.map(({ colour, share }) => [colour, share]))];
}

/** The processes of instances, each once. After the run each instance tells of its process at its own end: the last one counts. */
function processesOf(instances) {
  const found = new Map();
  for (const process of known(instances, (one) => one.process)) {
    const key = `${process.host ?? ""}/${process.pid}`;
    if (!((found.get(key)?.seconds ?? -1) > (process.seconds ?? 0))) found.set(key, process);
  }
  return [...found.values()];
}

function loadCell(instances) {
  const loads = known(processesOf(instances), (one) => one.load);
  if (loads.length) return percent(sum(loads, (x) => x));
  const spent = known(processesOf(instances), (one) => one.seconds);
  return spent.length ? seconds(sum(spent, (x) => x)) : null;
}

function memoryCell(instances) {
  const figures = known(processesOf(instances), (one) => one.memory);
  return figures.length ? memory(sum(figures, (x) => x)) : null;
}

function waitsOf(component) {
  const [most] = state.waits.filter((wait) => wait.component === component).sort((a, b) => b.count - a.count);
  if (!most) return null;
  return `${count(most.count)} ${most.sends ? `for room, ${most.from} to ${most.to}` : `for ${most.from}, on ${most.to}`}`;
}

function rateCell(instances) {
  const now = OVER.has(state.phase) ? null : rates(instances.map((one) => one.place));
  return now && sum(instances, (one) => one.messages) > 0 ? rate(now.messages) : null;
}

function showComponents(groups) {
  const shown = groups.filter(({ instances }) => instances.length);
  const choose = (name) => { at("#component").value = name; showInstances(); at("#instances").scrollIntoView(); };
  fillTable(at("#components table"), [
    { title: "component", cell: ({ name }) => make("button", { type: "button", onclick: () => choose(name) }, name) },
    { title: "instances", figure: true, cell: ({ instances }) => count(instances.length) },
    { title: "state", cell: ({ instances }) => {
      const counts = stateCounts(instances);
      if (instances.length === 1) return make("span", { className: `state ${instances[0].state}` }, instances[0].state);
      return [make("span", {}, stateText(counts)), stateBar(counts, instances.length)];
    } },
    { title: "simulated time", cell: ({ instances }) => simulatedCell(instances) },
    { title: "time", cell: ({ instances }) => timesCell(instances) },
    { title: "messages", figure: true, cell: ({ instances }) => count(sum(instances, (one) => one.messages)) },
    { title: "per second", figure: true, cell: ({ instances }) => rateCell(instances) },
    { title: "bytes", figure: true, cell: ({ instances }) => bytes(sum(instances, (one) => one.bytes)) },
    { title: "processor", figure: true, cell: ({ instances }) => loadCell(instances) },
    { title: "memory", figure: true, cell: ({ instances }) => memoryCell(instances) },
    { title: "waits", wide: true, cell: ({ name }) => waitsOf(name) },
  ], shown.slice(0, MOST_ROWS * 2));
}

const INSTANCE_COLUMNS = [
  { title: "instance", value: (one) => one.name, cell: (one) => make("button", { type: "button", title: "show the log", onclick: () => chooseLog(one.name) }, one.name) },
  { title: "state", value: (one) => STATES.indexOf(one.state), cell: (one) => make("span", { className: `state ${one.state}` }, one.state) },
  { title: "simulated time", value: (one) => one.simulated ?? -Infinity, cell: (one) => simulatedCell([one]) },
  { title: "time", value: (one) => one.times ? one.times.waiting / one.times.total : -1, cell: (one) => timesCell([one]) },
  { title: "messages", figure: true, value: (one) => one.messages, cell: (one) => count(one.messages) },
  { title: "per second", figure: true, value: (one) => rates([one.place])?.messages ?? 0, cell: (one) => rateCell([one]) },
  { title: "bytes", figure: true, value: (one) => one.bytes, cell: (one) => bytes(one.bytes) },
  { title: "processor", figure: true, value: (one) => one.process?.load ?? one.process?.seconds ?? -1, cell: (one) => loadCell([one]) },
  { title: "memory", figure: true, value: (one) => one.process?.memory ?? -1, cell: (one) => memoryCell([one]) },
  { title: "process", value: (one) => one.process?.pid ?? 0, cell: (one) => one.process ? `${one.process.pid}${one.process.host ? ` on ${one.process.host}` : ""}` : null },
  { title: "waits, or how it ended", wide: true, cell: (one) => one.text ?? null },
];

function showInstances() {
  const chosen = at("#component").value, filter = at("#filter").value.trim().toLowerCase();
  const list = members().filter(({ name }) => !chosen || name === chosen).flatMap(({ instances }) => instances);
  const isMeant = (one) => !filter || `${one.name} ${one.state} ${one.process?.host ?? ""}`.toLowerCase().includes(filter);
  const meant = list.filter(isMeant);
  const column = INSTANCE_COLUMNS.find(({ title }) => title === order.column);
  if (column) {
    const sign = order.falling ? -1 : 1;
    const compare = (a, b) => typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
    meant.sort((a, b) => sign * compare(column.value(a), column.value(b)));
  }
  const more = meant.length - MOST_ROWS;
  setText(at("#shown"), more > 0 ? `the first ${MOST_ROWS} of ${count(meant.length)}; filter, or sort by a column` : `${count(meant.length)} of ${count(facts.instances.length)}`);
  fillTable(at("#instances table"), INSTANCE_COLUMNS, meant.slice(0, MOST_ROWS), sortBy);
  drawMap(meant);
}

function sortBy(title) {
  order = { column: title, falling: order.column === title ? !order.falling : title !== "instance" };
  showInstances();
}

/** A square for each instance, in the colour of its state. */
function drawMap(list) {
  const canvas = at("#map");
  canvas.hidden = list.length < 3;
  if (canvas.hidden) return;
  const size = list.length > 20000 ? 3 : list.length > 4000 ? 6 : 12, gap = size > 6 ? 2 : 1;
  const across = Math.max(1, Math.floor(at("#instances").clientWidth - 34) / (size + gap) | 0);
  const width = Math.min(list.length, across) * (size + gap), height = Math.min(600, Math.ceil(list.length / across) * (size + gap));
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale; canvas.height = height * scale;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  const counts = stateCounts(list);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `the states of ${list.length} instances: ${stateText(counts)}`);
  const paint = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  paint.scale(scale, scale);
  const alias = { awaited: "starting", ended: "starting" };
  const colours = Object.fromEntries(STATES.map((name) => [name, style.getPropertyValue(`--${alias[name] ?? name}`)]));
  list.forEach((one, place) => {
    paint.fillStyle = colours[one.state];
    paint.fillRect(place % across * (size + gap), Math.floor(place / across) * (size + gap), size, size);
  });
  const meant = (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / (size + gap)), row = Math.floor((event.clientY - box.top) / (size + gap));
    return list[row * across + column];
  };
  canvas.onmousemove = (event) => { const one = meant(event); canvas.title = one ? `${one.name}: ${one.state}` : ""; };
  canvas.onclick = (event) => { const one = meant(event); if (one) chooseLog(one.name); };
}

function showConduits() {
  const waits = new Map(state.waits.map((wait) => [`${wait.from} ${wait.to} ${wait.sends}`, wait.count]));
  const waiting = (row, sends) => waits.get(`${row.from} ${row.to} ${sends}`);
  const mean = (sum, row) => sum === undefined ? null : seconds(sum / row.pairs);
  const now = OVER.has(state.phase);
  fillTable(at("#conduits table"), [
    { title: "from", cell: (row) => row.from },
    { title: "to", cell: (row) => row.to },
    { title: "pairs", figure: true, cell: (row) => count(row.pairs) },
    { title: "medium", cell: (row) => row.medium ?? null },
    { title: "messages", figure: true, cell: (row) => row.messages === undefined ? null : count(row.messages) },
    { title: "bytes", figure: true, cell: (row) => row.bytes === undefined ? null : bytes(row.bytes) },
    { title: "a receiver waited", figure: true, cell: (row) => mean(row.receiver_waited, row) },
    { title: "a sender waited", figure: true, cell: (row) => mean(row.sender_waited, row) },
    { title: "wait for a message now", figure: true, always: !now, cell: (row) => waiting(row, false) ? count(waiting(row, false)) : null },
    { title: "wait for room now", figure: true, cell: (row) => waiting(row, true) ? count(waiting(row, true)) : null },
  ], facts.conduits.slice(0, MOST_ROWS * 2));
  at("#conduits").hidden = !facts.conduits.length;
}

// The history: what the page has seen, on a grid of 600 by 100.

function remember() {
  if (history[history.length - 1]?.seconds === state.seconds) return;
  history.push({ seconds: state.seconds, messages: sum(state.instances, (one) => one.messages), counts: stateCounts(state.instances) });
  if (history.length > MOST_SAMPLES) history = history.filter((_, place) => place % 2 === 0);
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function chart(title, end, paths) {
  const picture = svg("svg", { viewBox: "0 0 600 100", preserveAspectRatio: "none", role: "img", "aria-label": `${title}, ${end}` });
  picture.append(...paths);
  const span = `the last ${seconds(history[history.length - 1].seconds - history[0].seconds)}`;
  return make("figure", {}, make("figcaption", {}, make("span", {}, title), make("span", {}, end)), picture,
    make("figcaption", {}, make("span", {}, span), make("span", {}, "now")));
}

function showHistory() {
  at("#history").hidden = history.length < 3;
  if (history.length < 3) return;
  const first = history[0].seconds, span = Math.max(1e-9, history[history.length - 1].seconds - first);
  const x = (sample) => (600 * (sample.seconds - first) / span).toFixed(1);
  const total = Math.max(1, facts.instances.length);
  const drawn = ["running", "waiting", "starting", "failed", "done"];
  const below = history.map(() => 0);
  const areas = drawn.map((name) => {
    const lower = history.map((sample, place) => `${x(sample)} ${(100 - 100 * below[place] / total).toFixed(1)}`).reverse();
    history.forEach((sample, place) => { below[place] += sample.counts[name] ?? 0; });
    const upper = history.map((sample, place) => `${x(sample)} ${(100 - 100 * below[place] / total).toFixed(1)}`);
    return svg("path", { class: name, d: `M${upper.join("L")}L${lower.join("L")}Z` });
  });
  const speeds = history.map((sample, place) => {
    const before = history[Math.max(0, place - RATE_LOOKS)], time = sample.seconds - before.seconds;
    return time > 0 ? Math.max(0, (sample.messages - before.messages) / time) : null;
  });
  const most = Math.max(0, ...speeds.filter((speed) => speed !== null));
  const points = history.flatMap((sample, place) => speeds[place] === null ? [] : [`${x(sample)} ${(98 - 94 * speeds[place] / (most || 1)).toFixed(1)}`]);
  at("#history .charts").replaceChildren(
    chart("States of the instances", stateText(history[history.length - 1].counts), areas),
    chart("Messages per second", `at most ${rate(most)}`, [svg("path", { class: "line", d: `M${points.join("L")}` })]));
}

// Logs.

function chooseLog(name) {
  at("#log-of").value = name;
  showLog();
  at("#logs").scrollIntoView();
}

async function showLog() {
  const name = at("#log-of").value.trim();
  at("#log-stream").disabled = !name;
  const key = name ? `${name}/${at("#log-stream").value}` : "";
  const text = await logText(key, name);
  const isNew = key !== log.key;
  if (!isNew && text === log.text) return;
  log = { key, text };
  const out = at("#log");
  setText(out, text);
  if (isNew || at("#follow").checked) out.scrollTop = out.scrollHeight;
}

async function logText(key, name) {
  const note = (text) => setText(at("#log-note"), text);
  if (name && !facts.instances.some(([known]) => known === name)) { note("there is no such instance"); return ""; }
  if (saved) {
    const part = saved.logs[key];
    note(part === undefined ? "not in this page" : part.cut ? "the end alone" : part.text ? "" : "nothing was printed");
    return part?.text ?? "";
  }
  const answer = await ask(`log?of=${encodeURIComponent(name)}&stream=${at("#log-stream").value}`);
  if (!answer) return log.text ?? "";
  const part = await answer.json();
  note(part.cut ? "the end alone" : part.text ? "" : "nothing was printed");
  return part.text;
}

// Looks at the run.

function trouble(text) {
  const element = at("#trouble");
  element.hidden = !text;
  setText(element, text ?? "");
}

async function ask(path) {
  try {
    const answer = await fetch(path, { cache: "no-store" });
    if (answer.ok) { trouble(null); return answer; }
    trouble(await answer.text());
  } catch {
    trouble("titin view does not answer any more. Start it again: it prints a new link.");
  }
  return null;
}

function showState() {
  // Several pages share a look of the server, so a state may come twice.
  if (looks[looks.length - 1]?.seconds !== state.seconds) looks.push(state);
  if (looks.length > RATE_LOOKS + 1) looks.shift();
  const groups = members();
  showHeader();
  showReport();
  markGraph(groups);
  showComponents(groups);
  showInstances();
  showConduits();
  showHistory();
}

function showFacts() {
  at("main").hidden = false;
  const names = [make("option", { value: "" }, "all"), ...facts.components.map((name) => make("option", { value: name }, name))];
  const chosen = at("#component").value;
  at("#component").replaceChildren(...names);
  at("#component").value = chosen;
  at("#names").replaceChildren(...facts.instances.slice(0, 2000).map(([name]) => make("option", { value: name })));
  showGraph();
  showTimes();
}

/** One look. The facts are read again once the run is over, and when instances have come. */
async function look() {
  const answer = await ask("state");
  if (!answer) return;
  const was = state?.phase;
  state = await answer.json();
  if (!facts || was !== state.phase || facts.instances.length !== state.instances.length) {
    const news = await ask("facts");
    if (!news) return;
    facts = await news.json();
    if (facts.instances.length !== state.instances.length) return;
    showFacts();
  }
  if (!OVER.has(state.phase)) remember();
  showState();
  await showLog();
}

async function follow() {
  if (!document.hidden) await look();
  if (!state || !OVER.has(state.phase)) setTimeout(follow, INTERVAL);
}

for (const selector of ["#component", "#filter"]) at(selector).addEventListener("input", showInstances);
for (const selector of ["#log-of", "#log-stream"]) at(selector).addEventListener("change", showLog);
for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("resize", () => { if (state) showInstances(); });

if (saved) {
  ({ facts, state } = saved);
  showFacts();
  showState();
  showLog();
} else {
  follow();
}
