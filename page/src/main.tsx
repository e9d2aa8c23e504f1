import { render } from "preact";
import { App } from "./App";
import { type PackedReport, type Run, taskName, unpack, unpackMatches } from "./report";
import "./style.css";
import type { Timeline } from "./timeline";

interface Door {
  ready: Promise<void>;
  count: number;
  latency_ns: number;
  task: (i: number) => { name: string; queue: string; server: number; operation: string; start_ns: number; end_ns: number };
  busy: () => Record<string, number>;
  view: () => { start_ns: number; end_ns: number };
  setView: (start_ns: number, end_ns: number) => void;
  locate: (i: number) => { x: number; y: number } | null;
  selected: () => string | null;
  /** The rows of the timeline, and where their names stand. */
  rows: () => { name: string; kind: string; pinned: boolean; x: number; y: number }[];
}

declare global {
  interface Window {
    chipless: Door;
  }
}

/** A read-only door for tests and scripts. It is there at once; its members answer when `ready` has resolved. */
function openDoor(): (run: Run, timeline: Timeline | null) => void {
  let opened = () => {};
  const ready = new Promise<void>((resolve) => (opened = resolve));
  const unopened = (): never => {
    throw new Error("await chipless.ready first");
  };
  window.chipless = { ready, count: 0, latency_ns: 0, task: unopened, busy: unopened, view: unopened, setView: unopened, locate: unopened, selected: unopened, rows: unopened };
  return (run, timeline) => {
    const { tasks, lanes, queues } = run;
    Object.assign(window.chipless, {
      count: tasks.count,
      latency_ns: run.latency_ps / 1000,
      task: (i: number) => {
        const lane = lanes[tasks.lane[i]];
        return {
          name: taskName(run, i),
          queue: queues[lane.queue].name,
          server: lane.server,
          operation: run.operations[tasks.operation[i]],
          start_ns: tasks.start[i] / 1000,
          end_ns: tasks.end[i] / 1000,
        };
      },
      busy: () => {
        const sums: Record<string, number> = {};
        for (const lane of lanes) {
          const { name } = queues[lane.queue];
          sums[name] = (sums[name] ?? 0) + lane.busy[lane.count] / 1000;
        }
        return sums;
      },
      view: () => ({ start_ns: (timeline?.start ?? 0) / 1000, end_ns: (timeline?.end ?? 0) / 1000 }),
      setView: (start: number, end: number) => timeline?.setView(start * 1000, end * 1000),
      locate: (i: number) => timeline?.locate(i) ?? null,
      selected: () => (timeline?.shown.selected == null ? null : taskName(run, timeline.shown.selected)),
      rows: () => {
        if (!timeline) return [];
        const box = timeline.canvas.getBoundingClientRect();
        const rows = [...timeline.layout.pinned, ...timeline.layout.others];
        return rows.map((row) => ({ name: row.name, kind: row.kind, pinned: row.pinned, x: box.left + timeline.gutter, y: box.top + timeline.y(row) + 11 }));
      },
    } satisfies Partial<Door>);
    if (timeline) void timeline.drawn().then(opened);
    else opened();
  };
}

/** Asks the server that serves the page for the number of its version, and loads it again when that changes. */
function watch() {
  let version: string | null = null;
  setInterval(async () => {
    try {
      const now = await (await fetch("version")).text();
      if (version !== null && now !== version) location.reload();
      version = now;
    } catch {
      // The server is gone; the page stays as it is.
    }
  }, 700);
}

async function main() {
  const opened = openDoor();
  const report = JSON.parse(document.getElementById("report")?.textContent ?? "{}") as PackedReport;
  const app = document.getElementById("app");
  if (!app) return;
  if (!report.run) {
    app.textContent = "This is the empty page of chipless report: it has no run in it.";
    return;
  }
  document.title = `${report.run.file} – Chipless`;
  const [run, other] = await Promise.all([unpack(report.run), report.against ? unpack(report.against) : null]);
  const matched = report.matched === null ? null : await unpackMatches(report.matched, run.tasks.count);
  render(<App report={report} run={run} other={other} matched={matched} made={(timeline) => opened(run, timeline)} />, app);
  // A contract or a fabric does not run.
  if (run.tasks.count === 0) opened(run, null);
  if (report.live) watch();
}

void main();
