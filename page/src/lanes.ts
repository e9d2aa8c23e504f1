import type { Run } from "./report";

export const ROW = 22;

/** A row of the timeline: the layers, a group of lanes, or a lane. */
export interface Row {
  kind: "layers" | "group" | "lane";
  name: string;
  /** By which it is pinned: a group and a lane may have one name. */
  key: string;
  /** The lanes whose tasks it shows. */
  lanes: number[];
  /** Its group is open, or it is one. */
  open: boolean;
  inGroup: boolean;
  pinned: boolean;
  /** Below the first row of its kind, pinned or not. */
  top: number;
}

export interface Layout {
  pinned: Row[];
  others: Row[];
  /** The row of each lane; null where its group is folded. */
  of: (Row | null)[];
}

/** The group of a queue: `core0` of `core0.pe`; `dpu` of `dpu3`; the queue itself where it has several servers. */
export function groupName(queue: string, servers: number): string {
  const dot = queue.indexOf(".");
  if (dot > 0) return queue.slice(0, dot);
  return servers > 1 ? queue : queue.replace(/\d+$/, "");
}

/** Rows from top to bottom: the pinned ones, then all others, group by group. A group of one is no group. */
export function layout(run: Run, pinned: ReadonlySet<string>, folded: ReadonlySet<string>): Layout {
  const groups = new Map<string, number[]>();
  run.lanes.forEach((lane, i) => {
    const { name, servers } = run.queues[lane.queue];
    const group = groupName(name, servers);
    const members = groups.get(group);
    if (members) members.push(i);
    else groups.set(group, [i]);
  });
  const rows: Row[] = [];
  const of: (Row | null)[] = run.lanes.map(() => null);
  const add = (kind: Row["kind"], name: string, lanes: number[], open: boolean, inGroup: boolean) => {
    const key = kind === "lane" ? name : `${name}/`;
    const row = { kind, name, key, lanes, open, inGroup, pinned: pinned.has(key), top: 0 };
    rows.push(row);
    if (kind === "lane") of[lanes[0]] = row;
    return row;
  };
  if (run.layers.length > 0) add("layers", "layers", [], true, false);
  for (const [group, members] of groups) {
    const open = members.length === 1 || !folded.has(group);
    if (members.length > 1) add("group", group, members, open, false);
    for (const lane of members) {
      const { name } = run.lanes[lane];
      if (open || pinned.has(name)) add("lane", name, [lane], open, members.length > 1);
    }
  }
  const placed = (rows: Row[]) => rows.map((row, i) => Object.assign(row, { top: i * ROW }));
  return { pinned: placed(rows.filter((row) => row.pinned)), others: placed(rows.filter((row) => !row.pinned)), of };
}

/** A layer while it runs. */
export interface Span {
  layer: number;
  start: number;
  /** The end of its last task. */
  last: number;
  /** That, or the start of the next layer. */
  end: number;
}

/** The layers one after the other, by the tasks that do more than move bytes: what is brought for a layer often comes long before. */
export function layerSpans({ tasks, layers }: Run): Span[] {
  const found = layers.map((_, layer) => ({ layer, start: Infinity, last: 0, end: 0, works: false }));
  for (let task = 0; task < tasks.count; task++) {
    if (tasks.layer[task] === 0) continue;
    const span = found[tasks.layer[task] - 1];
    const works = tasks.moved[task] === 0;
    if (span.works && !works) continue;
    if (works && !span.works) Object.assign(span, { start: Infinity, last: 0, works });
    span.start = Math.min(span.start, tasks.start[task]);
    span.last = Math.max(span.last, tasks.end[task]);
  }
  const ran = found.filter((span) => span.start < Infinity).sort((a, b) => a.start - b.start || a.layer - b.layer);
  return ran.map(({ layer, start, last }, i) => ({ layer, start, last, end: Math.min(last, ran[i + 1]?.start ?? last) }));
}
