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
