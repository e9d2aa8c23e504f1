/** A time in the unit that a person would choose, from picoseconds. */
export function time(ps: number): string {
  const units: [number, string][] = [
    [1e12, "s"],
    [1e9, "ms"],
    [1e6, "µs"],
    [1e3, "ns"],
  ];
  for (const [scale, unit] of units) {
    if (Math.abs(ps) >= scale) return `${(ps / scale).toFixed(2)} ${unit}`;
  }
  return ps === 0 ? "0" : `${Math.round(ps)} ps`;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return unit === 0 ? `${count} B` : `${value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function count(n: number, noun: string): string {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Operations a second, in decimal units. */
export function rate(perSecond: number): string {
  const units = ["op/s", "kop/s", "Mop/s", "Gop/s", "Top/s", "Pop/s"];
  let unit = 0;
  while (perSecond >= 1000 && unit < units.length - 1) {
    perSecond /= 1000;
    unit++;
  }
  return `${perSecond.toPrecision(3)} ${units[unit]}`;
}

/** One name for several: a number that differs shows its range, `core0–15.pe`; names that differ in more are listed. */
export function joint(names: string[]): string {
  const pieces = names.map((name) => name.split(/(\d+)/));
  const first = pieces[0];
  const alike = (other: string[]) => other.length === first.length && other.every((piece, i) => i % 2 === 1 || piece === first[i]);
  if (!pieces.every(alike)) return names.join(", ");
  const range = (i: number) => {
    const values = pieces.map((one) => one[i]).sort((a, b) => Number(a) - Number(b));
    const [least, most] = [values[0], values[values.length - 1]];
    return least === most ? least : `${least}–${most}`;
  };
  return first.map((piece, i) => (i % 2 === 1 ? range(i) : piece)).join("");
}

/** Lines of cells as CSV (RFC 4180). A text that a spreadsheet would take for a formula has an apostrophe in front: names come from files that nobody need trust. */
export function csv(lines: (string | number)[][]): string {
  const cell = (value: string | number) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return lines.map((line) => line.map(cell).join(",")).join("\n");
}
