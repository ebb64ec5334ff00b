// The pictures: the graph of the model with what goes on, and where the time went.

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
