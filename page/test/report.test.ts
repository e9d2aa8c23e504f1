import { deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";
import { readState, writeState } from "../src/address";
import { hues, luminance, operationColors } from "../src/colors";
import { bytes, csv, joint, time } from "../src/format";
import { groupName, layerSpans } from "../src/lanes";
import { headline } from "../src/memory";
import { around, placed } from "../src/network";
import { type Column, type PackedRun, busyUntil, numbers, taskAt, taskName, unpack } from "../src/report";
import { matching, nextMatch } from "../src/search";
import { areaSums } from "../src/sums";

function varints(values: number[]): Uint8Array {
  const out: number[] = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) out.push((value % 128) | 128);
    out.push(value);
  }
  return Uint8Array.from(out);
}

const column = (values: number[]) => deflateRawSync(varints(values)).toString("base64");

/** Two lanes: a[0] from 0 to 10, a[1] from 15 to 20; b[0] from 10 to 15, on which a[1] waited. */
function packed(): PackedRun {
  const columns: Record<Column, number[]> = {
    gap: [0, 5, 10],
    duration: [10, 5, 5],
    index: [0, 1, 0],
    operation: [0, 0, 1],
    layer: [0, 1, 1],
    wait: [1, 3, 3],
    on: [0, 1, 2],
    by: [0, 3, 1],
    slack: [0, 0, 0],
    read: [4096, 2 ** 40, 7],
    written: [0, 1, 2],
    moved: [4096, 0, 0],
  };
  return {
    file: "x",
    target: "npu",
    name: "",
    latency_ps: 20,
    timed_by: null,
    estimate_ps: null,
    notes: [],
    facts: [],
    queues: [
      { name: "a", servers: 1, tasks: 2, busy_ns: 0.015 },
      { name: "b", servers: 1, tasks: 1, busy_ns: 0.005 },
    ],
    lanes: [
      { queue: 0, server: 0, count: 2 },
      { queue: 1, server: 0, count: 1 },
    ],
    operations: ["dma", "conv"],
    layers: ["first"],
    syncs: ["s0", "s1"],
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, column(values)])) as Record<Column, string>,
    layer_rows: [],
    edges: [],
    critical_by_queue: [],
    critical_by_engine: [],
    roofline: [],
    ranking: [],
    resources: [],
    memories: [],
    findings: [],
    pictures: [],
    details: deflateRawSync(JSON.stringify(["one", "two", "three"])).toString("base64"),
  };
}

test("numbers of any size come back", () => {
  const values = [0, 1, 127, 128, 300, 2 ** 32 + 5, 2 ** 53 - 1];
  expect([...numbers(varints(values), values.length)]).toEqual(values);
});

test("a column that ends early is an error", () => {
  expect(() => numbers(Uint8Array.of(1, 128), 2)).toThrow("ends early");
});

test("columns become tasks", async () => {
  const run = await unpack(packed());
  expect([...run.tasks.start]).toEqual([0, 15, 10]);
  expect([...run.tasks.end]).toEqual([10, 20, 15]);
  expect([...run.tasks.critical]).toEqual([1, 1, 1]);
  expect([...run.tasks.reason]).toEqual([0, 1, 1]);
  expect(run.tasks.read[1]).toBe(2 ** 40);
  expect([0, 1, 2].map((task) => taskName(run, task))).toEqual(["a[0]", "a[1]", "b[0]"]);
  expect(run.details).toEqual(["one", "two", "three"]);
});

test("busy time up to an instant", async () => {
  const run = await unpack(packed());
  const at = [-1, 0, 4, 10, 12, 15, 17, 20, 99].map((t) => busyUntil(run, run.lanes[0], t));
  expect(at).toEqual([0, 0, 4, 10, 10, 10, 12, 15, 15]);
});

test("the task under a point, or the nearest within a tolerance", async () => {
  const run = await unpack(packed());
  const lane = run.lanes[0];
  expect([5, 16].map((t) => taskAt(run, lane, t, 0))).toEqual([0, 1]);
  expect(taskAt(run, lane, 12, 1)).toBeNull();
  expect(taskAt(run, lane, 12, 2)).toBe(0);
  expect(taskAt(run, lane, 14, 2)).toBe(1);
  expect(taskAt(run, lane, 25, Infinity)).toBe(1);
});

test("times and sizes as people read them", () => {
  expect([0, 999, 1500, 2.5e6, 3e12].map(time)).toEqual(["0", "999 ps", "1.50 ns", "2.50 µs", "3.00 s"]);
  expect([0, 1023, 1536, 3 * 2 ** 30].map(bytes)).toEqual(["0 B", "1023 B", "1.50 KiB", "3.00 GiB"]);
});

test("names that differ in numbers are one", () => {
  expect(joint(["dram"])).toBe("dram");
  expect(joint(["core0.pe", "core10.pe", "core2.pe"])).toBe("core0–10.pe");
  expect(joint(["link 0,0 east", "link 0,3 east"])).toBe("link 0,0–3 east");
  expect(joint(["dpu0", "shave0"])).toBe("dpu0, shave0");
});

test("colours follow from the names of operations, not from how long they take", async () => {
  const run = await unpack(packed());
  const swift = { ...run, tasks: { ...run.tasks, end: run.tasks.end.map((end, i) => (i === 1 ? end * 1000 : end)) } };
  const turned = { ...run, operations: [...run.operations].reverse(), tasks: { ...run.tasks, operation: run.tasks.operation.map((at) => 1 - at) } };
  const colors = operationColors([run], false);
  expect(new Set(colors.values()).size).toBe(2);
  for (const other of [swift, turned]) expect(new Map(operationColors([other], false))).toEqual(colors);
  expect(operationColors([run, swift], false)).toEqual(colors);
});

test.each([false, true])("hundreds of colours differ and stand out from the page (dark: %s)", (dark) => {
  const colors = hues(300, dark);
  expect(new Set(colors).size).toBe(300);
  const ground = luminance(dark ? "#111111" : "#ffffff");
  const contrast = (color: string) => (Math.max(luminance(color), ground) + 0.05) / (Math.min(luminance(color), ground) + 0.05);
  expect(Math.min(...colors.map(contrast))).toBeGreaterThanOrEqual(3);
});

test("sums of an area cut tasks and waits at its ends", async () => {
  const run = await unpack(packed());
  const { total, waits, lanes, operations } = areaSums(run, { start: 5, end: 12, lanes: [] });
  expect(total).toMatchObject({ tasks: 2, busy: 7, critical: 7, moved: 2048 });
  expect(lanes.map((lane) => [lane.name, lane.busy])).toEqual([
    ["a", 5],
    ["b", 2],
  ]);
  expect(operations.map((operation) => [operation.name, operation.busy])).toEqual([
    ["dma", 5],
    ["conv", 2],
  ]);
  // a[1] waits from 10 to 15, b[0] from 0 to 10.
  expect(waits).toEqual([0, 7, 0, 0, 0]);
  expect(areaSums(run, { start: 5, end: 12, lanes: [1] }).total.tasks).toBe(1);
});

test("matches are in names, operations and layers", async () => {
  const run = await unpack(packed());
  const found = (text: string) => [...matching(run, text)];
  expect(found("A[1]")).toEqual([0, 1, 0]);
  expect(found("conv")).toEqual([0, 0, 1]);
  expect(found("first")).toEqual([0, 1, 1]);
  expect(found("x")).toEqual([0, 0, 0]);
  const matches = matching(run, "first");
  expect([nextMatch(matches, null, 1), nextMatch(matches, 2, 1), nextMatch(matches, 1, -1), nextMatch(matches, null, -1)]).toEqual([1, 1, 2, 2]);
  expect(nextMatch(matching(run, "x"), 1, 1)).toBeNull();
});

test("a layer runs while its tasks work", async () => {
  const run = await unpack(packed());
  expect(layerSpans(run)).toEqual([{ layer: 0, start: 10, last: 20, end: 20 }]);
});

test("queues of one core or engine are a group", () => {
  expect([groupName("core0.pe", 1), groupName("dpu3", 1), groupName("shave0", 2)]).toEqual(["core0", "dpu", "shave0"]);
});

test("the state of a page comes back from its address", () => {
  const state = { view: [5, 70] as [number, number], task: 3, layer: null, area: { start: 1, end: 9, lanes: [0, 2] }, search: "a&b=#", critical: true, pinned: ["dpu0", "a b"], folded: ["core 0"] };
  expect(readState(`#${writeState(state)}`, 4, 1, 3)).toEqual(state);
  expect(readState("#view=a-b&task=4&layer=-1&area=5", 4, 1, 3)).toMatchObject({ view: null, task: null, layer: null, area: null });
});

test("a scratchpad comes before memory of another kind that is fuller", () => {
  const memory = (id: number, kind: "DRAM" | "scratchpad", size: number, bytes: number) => ({ id, name: "", kind, size, live: { ps: [0], bytes: [bytes] }, blocks: [], more_blocks: 0 });
  expect(headline([memory(0, "DRAM", 10, 10), memory(1, "scratchpad", 100, 1), memory(2, "scratchpad", 100, 5)])).toBe(2);
  expect(headline([])).toBe(-1);
});

test("layers stand behind those that they read, whatever uses memory again", () => {
  const edges = [
    { from: 0, to: 1, bytes: 1 },
    { from: 0, to: 2, bytes: 1 },
    { from: 2, to: 3, bytes: 1 },
    { from: 3, to: 0, bytes: 1 },
  ];
  const places = placed(around(4, edges, 0), edges, [0, 1, 2, 3]);
  expect(places.map(({ layer, column, row }) => [layer, column, row])).toEqual([
    [0, 0, 0],
    [1, 1, 0],
    [2, 1, 1],
    [3, 2, 0],
  ]);
  const chain = Array.from({ length: 999 }, (_, i) => ({ from: i, to: i + 1, bytes: 1 }));
  const near = around(1000, chain, 500);
  expect([near.size, Math.min(...near)]).toEqual([60, 470]);
});

test("copied tables hold no formulas", () => {
  const lines = [["name", "ns"], ["=HYPERLINK(1)", -1.5], ["@a,b", 2], ["conv", 3]];
  expect(csv(lines)).toBe("name,ns\n'=HYPERLINK(1),-1.5\n\"'@a,b\",2\nconv,3");
});
