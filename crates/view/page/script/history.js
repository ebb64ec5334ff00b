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
