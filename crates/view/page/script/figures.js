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
