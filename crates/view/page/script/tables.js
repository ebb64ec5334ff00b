// The tables of components, instances and conduits, and the map of instances.

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
