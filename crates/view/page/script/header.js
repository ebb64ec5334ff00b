// What stands above: bars of states, the figures of the run, the report.

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
