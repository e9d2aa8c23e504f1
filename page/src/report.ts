// What `chipless report` writes into the page. crates/report/src/page/ is the other end; the two change together.

/** A run as it stands in the page: JSON with the columns of its tasks packed. */
export interface PackedRun {
  file: string;
  target: string;
  name: string;
  latency_ps: number;
  /** The machine that the times rest on; null where there is none. */
  timed_by: string | null;
  /** The compiler's own estimate of the latency, where the file carries one. */
  estimate_ps: number | null;
  notes: string[];
  facts: Fact[];
  queues: Queue[];
  /** A lane for each server of each queue, in natural order; tasks stand lane by lane in order of start. */
  lanes: { queue: number; server: number; count: number }[];
  operations: string[];
  layers: string[];
  syncs: string[];
  columns: Record<Column, string>;
  layer_rows: { layer: string; tasks: number; busy_ns: number; critical_ns: number }[];
  /** Bytes that one layer wrote and another one reads; the two are places in `layers`. */
  edges: { from: number; to: number; bytes: number }[];
  critical_by_queue: { queue: string; ns: number }[];
  /** The critical path by kind of engine, and the time between its tasks. */
  critical_by_engine: { engine: string; ns: number; share: number }[];
  roofline: { operation: string; tasks: number; ops: number; bytes: number; ops_per_byte: number; ops_per_second: number; bound: "compute" | "memory" | "latency" }[];
  ranking: { figure: string; change: string; latency_ns: number; gain: number }[];
  resources: { name: string; bytes: number; utilization: number }[];
  memories: Memory[];
  findings: { code: string; class: string; severity: string; message: string; place: string }[];
  pictures: Picture[];
  /** A JSON array of what `list` says of each task, packed like a column; null where there are too many tasks. */
  details: string | null;
}

export interface Fact {
  name: string;
  value: string;
  children: Fact[];
}

export interface Queue {
  name: string;
  servers: number;
  tasks: number;
  busy_ns: number;
}

export interface Picture {
  name: string;
  title: string;
  svg: string;
  /** The same as lines of text. */
  text: string;
}

export interface Block {
  name: string;
  role: string;
  address: number;
  size: number;
  start_ps: number;
  end_ps: number;
}

export interface Memory {
  /** Its number in the program, by which the server knows it. */
  id: number;
  name: string;
  kind: "DRAM" | "HBM" | "scratchpad" | "registers";
  size: number | null;
  /** Live bytes from each instant on. */
  live: { ps: number[]; bytes: number[] };
  /** Buffers while they are alive. */
  blocks: Block[];
  /** Blocks that are left out because there are too many. */
  more_blocks: number;
}

export interface PackedReport {
  schema_version: number;
  chipless: string;
  run: PackedRun;
  against: PackedRun | null;
  /** What changed from this program to the other. */
  difference: Difference | null;
  /** Of each task of the run its match in the other one, from 1 and packed like a column; null where there is no other. */
  matched: string | null;
  /** Whether the page is served and asks when it should reload. */
  live: boolean;
  /** Why the page cannot show bytes; null where it asks the server for them. */
  no_bytes: string | null;
}

/** What the server says of an address at an instant. crates/report/src/instant.rs is the other end. */
export interface Instant {
  memory: string;
  buffer: string;
  role: string;
  /** Bytes of the buffer. */
  size: number;
  /** Where in the buffer the byte is that was asked for. */
  offset: number;
  /** The address of the first byte that is shown. */
  address: number;
  ps: number;
  /** In hexadecimal. */
  bytes: string;
  writer: string | null;
  written_ps: number | null;
  is_undefined: boolean;
  notes: string[];
}

export interface Difference {
  equal: boolean;
  interface: string[];
  tasks: { matched: number; moved: number; added: string[]; removed: string[]; changed: { a: string; b: string; operation: string; what: string[] }[] };
  constants: { a: string; b: string; bytes_changed: number }[];
  memory: { memory: string; peak_a: number | null; peak_b: number | null }[];
  /** Why the two runs take different times: layer by layer. */
  time?: { layers: { layer: string; a_ns: number; b_ns: number; why: string; contribution_ns: number }[] };
}

export type Column =
  | "gap"
  | "duration"
  | "index"
  | "operation"
  | "layer"
  | "wait"
  | "on"
  | "by"
  | "slack"
  | "read"
  | "written"
  | "moved";

/** Why a task did not start when its server was free. */
export const REASONS = ["none", "sync", "release", "server", "end"] as const;

/** The tasks of a run as columns; times in picoseconds. */
export interface Tasks {
  count: number;
  lane: Uint32Array;
  index: Uint32Array;
  start: Float64Array;
  end: Float64Array;
  operation: Uint32Array;
  /** Layer + 1; 0 without one. */
  layer: Uint32Array;
  /** Place in REASONS. */
  reason: Uint8Array;
  critical: Uint8Array;
  /** Sync + 1; 0 without one. */
  on: Uint32Array;
  /** Place of the task that ended the wait + 1; 0 without one. */
  by: Uint32Array;
  slack: Float64Array;
  read: Float64Array;
  written: Float64Array;
  /** Bytes over shared links. */
  moved: Float64Array;
}

export interface Lane {
  queue: number;
  server: number;
  name: string;
  first: number;
  count: number;
  /** Busy picoseconds of the first i tasks of the lane. */
  busy: Float64Array;
}

export interface Run extends Omit<PackedRun, "lanes" | "columns" | "details"> {
  lanes: Lane[];
  details: string[] | null;
  tasks: Tasks;
}

/** Of each task its match in the other run, from 1; 0 without one. */
export async function unpackMatches(packed: string, count: number): Promise<Uint32Array> {
  return Uint32Array.from(numbers(await inflate(packed), count));
}

async function inflate(text: string): Promise<Uint8Array> {
  const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Numbers of a varint column: seven bits a byte, low bits first. Beyond 32 bits they stay exact up to 2^53. */
export function numbers(bytes: Uint8Array, count: number): Float64Array {
  const out = new Float64Array(count);
  let at = 0;
  for (let i = 0; i < count; i++) {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("a column of the report ends early");
      value += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
    }
    out[i] = value;
  }
  return out;
}

export async function unpack(packed: PackedRun): Promise<Run> {
  const count = packed.lanes.reduce((sum, lane) => sum + lane.count, 0);
  const names = Object.keys(packed.columns) as Column[];
  const read = await Promise.all(names.map(async (name) => [name, numbers(await inflate(packed.columns[name]), count)] as const));
  const column = Object.fromEntries(read) as Record<Column, Float64Array>;
  const start = column.gap;
  const end = column.duration;
  const lane = new Uint32Array(count);
  const lanes: Lane[] = [];
  let first = 0;
  packed.lanes.forEach((packedLane, number) => {
    const queue = packed.queues[packedLane.queue];
    const busy = new Float64Array(packedLane.count + 1);
    let at = 0;
    for (let i = 0; i < packedLane.count; i++) {
      const task = first + i;
      lane[task] = number;
      start[task] += at;
      busy[i + 1] = busy[i] + end[task];
      end[task] += start[task];
      at = end[task];
    }
    const name = queue.servers > 1 ? `${queue.name} (${packedLane.server})` : queue.name;
    lanes.push({ ...packedLane, name, first, busy });
    first += packedLane.count;
  });
  const reason = new Uint8Array(count);
  const critical = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    reason[i] = column.wait[i] >> 1;
    critical[i] = column.wait[i] & 1;
  }
  const whole = (name: Column) => Uint32Array.from(column[name]);
  const tasks: Tasks = {
    count,
    lane,
    index: whole("index"),
    start,
    end,
    operation: whole("operation"),
    layer: whole("layer"),
    reason,
    critical,
    on: whole("on"),
    by: whole("by"),
    slack: column.slack,
    read: column.read,
    written: column.written,
    moved: column.moved,
  };
  const details = packed.details === null ? null : (JSON.parse(new TextDecoder().decode(await inflate(packed.details))) as string[]);
  return { ...packed, lanes, tasks, details };
}

export function taskName(run: Run, task: number): string {
  const lane = run.lanes[run.tasks.lane[task]];
  return `${run.queues[lane.queue].name}[${run.tasks.index[task]}]`;
}

export function layerName(run: Run, task: number): string | null {
  const layer = run.tasks.layer[task];
  return layer === 0 ? null : run.layers[layer - 1];
}

/** Picoseconds between the end of the task before and a task's start. */
export function waited({ tasks, lanes }: Run, task: number): number {
  return tasks.start[task] - (task > lanes[tasks.lane[task]].first ? tasks.end[task - 1] : 0);
}

/** The first task of a lane that ends after an instant; the lane's count if none does. */
export function firstEndingAfter(run: Run, lane: Lane, at: number): number {
  return search(run.tasks.end, lane, (end) => end > at);
}

/** The first task of a lane that starts at or after an instant. */
export function firstStartingFrom(run: Run, lane: Lane, at: number): number {
  return search(run.tasks.start, lane, (start) => start >= at);
}

function search(column: Float64Array, lane: Lane, holds: (value: number) => boolean): number {
  let low = 0;
  let high = lane.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(column[lane.first + middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Busy picoseconds of a lane up to an instant. One binary search, whatever the zoom. */
export function busyUntil(run: Run, lane: Lane, at: number): number {
  const i = firstEndingAfter(run, lane, at);
  const running = i < lane.count ? Math.max(0, at - run.tasks.start[lane.first + i]) : 0;
  return lane.busy[i] + running;
}

/** The task of a lane at an instant, or the nearest one within a tolerance. */
export function taskAt(run: Run, lane: Lane, at: number, tolerance: number): number | null {
  const i = firstEndingAfter(run, lane, at);
  const distance = (n: number) => {
    const task = lane.first + n;
    return Math.max(run.tasks.start[task] - at, at - run.tasks.end[task], 0);
  };
  let best: number | null = null;
  for (const n of [i - 1, i, i + 1]) {
    if (n < 0 || n >= lane.count || distance(n) > tolerance) continue;
    if (best === null || distance(n) < distance(best)) best = n;
  }
  return best === null ? null : lane.first + best;
}
