// What the page shows, as the part of its address behind the #: a link opens the same view.

export interface State {
  /** Start and end of the view in picoseconds; null for the whole run. */
  view: [number, number] | null;
  task: number | null;
  layer: number | null;
  /** Start, end and lanes. */
  area: { start: number; end: number; lanes: number[] } | null;
  search: string;
  critical: boolean;
  pinned: string[];
  folded: string[];
}

export function writeState(state: State): string {
  const out = new URLSearchParams();
  if (state.view) out.set("view", state.view.map((at) => Math.max(0, Math.round(at))).join("-"));
  if (state.task !== null) out.set("task", String(state.task));
  if (state.layer !== null) out.set("layer", String(state.layer));
  if (state.area) out.set("area", [Math.round(state.area.start), Math.round(state.area.end), ...state.area.lanes].join("-"));
  if (state.search) out.set("search", state.search);
  if (state.critical) out.set("critical", "1");
  for (const name of state.pinned) out.append("pin", name);
  for (const name of state.folded) out.append("fold", name);
  return out.toString();
}

/** Numbers that are none, or beyond the run, are left out. */
export function readState(text: string, tasks: number, layers: number, lanes: number): State {
  const given = new URLSearchParams(text.replace(/^#/, ""));
  const whole = (name: string, below: number) => {
    const value = given.get(name);
    return value !== null && /^\d+$/.test(value) && Number(value) < below ? Number(value) : null;
  };
  const list = (name: string) => (given.get(name) ?? "").split("-").map((value) => (/^\d+$/.test(value) ? Number(value) : NaN));
  const [from, to] = list("view");
  const [start, end, ...rows] = list("area");
  return {
    view: to > from ? [from, to] : null,
    task: whole("task", tasks),
    layer: whole("layer", layers),
    area: end > start ? { start, end, lanes: rows.filter((lane) => lane < lanes) } : null,
    search: given.get("search") ?? "",
    critical: given.get("critical") === "1",
    pinned: given.getAll("pin"),
    folded: given.getAll("fold"),
  };
}
