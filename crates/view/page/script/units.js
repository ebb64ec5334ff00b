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
