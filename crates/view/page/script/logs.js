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
