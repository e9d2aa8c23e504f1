import { type Run, firstEndingAfter, firstStartingFrom, waited } from "./report";

/** A part of the timeline: times in picoseconds, and lanes; all of them where there is none. */
export interface Area {
  start: number;
  end: number;
  lanes: number[];
}

export interface Sum {
  name: string;
  tasks: number;
  /** Busy picoseconds inside the area. */
  busy: number;
  /** Those of them on the critical path. */
  critical: number;
  /** Bytes over shared links, each task's by the share of it that lies inside. */
  moved: number;
}

export interface Sums {
  operations: Sum[];
  lanes: Sum[];
  total: Sum;
  /** Picoseconds that the lanes waited, by place in REASONS. */
  waits: number[];
}

const none = (name: string): Sum => ({ name, tasks: 0, busy: 0, critical: 0, moved: 0 });

/** What happens in a part of the timeline. */
export function areaSums(run: Run, area: Area): Sums {
  const { tasks } = run;
  const sums = { operations: run.operations.map(none), lanes: [] as Sum[], total: none("Total"), waits: [0, 0, 0, 0, 0] };
  for (const number of area.lanes.length > 0 ? area.lanes : run.lanes.keys()) {
    const lane = run.lanes[number];
    const sum = none(lane.name);
    sums.lanes.push(sum);
    const first = firstEndingAfter(run, lane, area.start);
    const last = firstStartingFrom(run, lane, area.end);
    for (let i = first; i < last; i++) add(run, lane.first + i, area.start, area.end, [sum, sums.operations[tasks.operation[lane.first + i]], sums.total]);
    // The wait before a task stands in the area though the task may start behind it.
    for (let i = first; i <= last && i < lane.count; i++) {
      const task = lane.first + i;
      const from = tasks.start[task] - waited(run, task);
      sums.waits[tasks.reason[task]] += Math.max(0, Math.min(tasks.start[task], area.end) - Math.max(from, area.start));
    }
  }
  return sorted(sums);
}

/** What a layer does. */
export function layerSums(run: Run, layer: number): Sums {
  const { tasks } = run;
  const sums = { operations: run.operations.map(none), lanes: run.lanes.map((lane) => none(lane.name)), total: none("Total"), waits: [0, 0, 0, 0, 0] };
  for (let task = 0; task < tasks.count; task++) {
    if (tasks.layer[task] !== layer + 1) continue;
    add(run, task, 0, Infinity, [sums.lanes[tasks.lane[task]], sums.operations[tasks.operation[task]], sums.total]);
    sums.waits[tasks.reason[task]] += waited(run, task);
  }
  return sorted(sums);
}

function add({ tasks }: Run, task: number, from: number, to: number, sums: Sum[]) {
  const long = tasks.end[task] - tasks.start[task];
  const busy = Math.max(0, Math.min(tasks.end[task], to) - Math.max(tasks.start[task], from));
  const moved = long > 0 ? tasks.moved[task] * (busy / long) : tasks.moved[task];
  for (const sum of sums) {
    sum.tasks++;
    sum.busy += busy;
    sum.moved += moved;
    if (tasks.critical[task]) sum.critical += busy;
  }
}

function sorted(sums: Sums): Sums {
  const used = (rows: Sum[]) => rows.filter((row) => row.tasks > 0).sort((a, b) => b.busy - a.busy);
  return { ...sums, operations: used(sums.operations), lanes: used(sums.lanes) };
}
