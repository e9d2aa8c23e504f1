import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Details } from "./Details";
import { MemoryView } from "./MemoryView";
import { Pictures } from "./Pictures";
import { Against, Known, Summary, Why } from "./Summary";
import { type Column, Table } from "./Table";
import { TimelineView } from "./TimelineView";
import { classes, theme as currentTheme } from "./colors";
import { bytes, time } from "./format";
import { type PackedReport, REASONS, type Run, layerName, taskName } from "./report";
import type { Timeline } from "./timeline";

interface Props {
  report: PackedReport;
  run: Run;
  other: Run | null;
  made: (timeline: Timeline, select: (task: number | null) => void) => void;
}

export function App({ report, run, other, made }: Props) {
  const [theme, setTheme] = useState(currentTheme);
  const [selected, setSelected] = useState<number | null>(null);
  const [otherSelected, setOtherSelected] = useState<number | null>(null);
  const [help, setHelp] = useState(false);
  const [missing, setMissing] = useState("");
  const timeline = useRef<Timeline | null>(null);
  const search = useRef<HTMLInputElement>(null);

  useEffect(() => {
    const media = window.matchMedia("screen and (prefers-color-scheme: dark)");
    const change = () => setTheme(currentTheme());
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.key === "Escape") return setHelp(false);
      if (event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey) return;
      if (event.key === "?") setHelp(true);
      else if (event.key === "/") {
        event.preventDefault();
        search.current?.focus();
      }
    };
    window.addEventListener("keydown", keys);
    return () => window.removeEventListener("keydown", keys);
  }, []);

  const show = (task: number) => {
    setSelected(task);
    timeline.current?.reveal(task);
  };
  const find = (text: string) => {
    const found = search.current && text ? next(run, text, selected) : null;
    setMissing(found === null && text ? `No task, operation or layer has "${text}" in its name.` : "");
    if (found !== null) show(found);
  };
  const colors = useMemo(() => classes(run), [run]);
  const otherColors = useMemo(() => other && classes(other), [other]);
  const followers = useMemo(() => (selected === null ? [] : (timeline.current?.followers(selected) ?? [])), [selected]);
  const opened = () => document.querySelector<HTMLElement>("[data-testid=details]")?.focus();

  return (
    <main>
      <header>
        <h1>
          {run.file} <span class="target">{run.target}</span>
        </h1>
        {run.tasks.count > 0 && (
          <form
            class="row"
            role="search"
            onSubmit={(event) => {
              event.preventDefault();
              find(search.current?.value ?? "");
            }}
          >
            <input ref={search} type="search" placeholder="Task, operation or layer (/)" aria-label="Search for a task, operation or layer" data-testid="search" />
            <button>Find</button>
            <button type="button" onClick={() => setHelp(true)}>
              Help (?)
            </button>
            <span role="status">{missing}</span>
          </form>
        )}
      </header>
      <Summary run={run} />
      {run.tasks.count > 0 && (
        <section aria-labelledby="timeline-title">
          <h2 id="timeline-title">Timeline</h2>
          <div class="split">
            <TimelineView
              run={run}
              classes={colors}
              theme={theme}
              selected={selected}
              label="Timeline"
              testId="timeline"
              select={setSelected}
              open={opened}
              made={(one) => {
                timeline.current = one;
                made(one, setSelected);
              }}
            />
            <Details run={run} task={selected} followers={followers} select={show} />
          </div>
        </section>
      )}
      {other && otherColors && (
        <section data-testid="against" aria-labelledby="against-title">
          <h2 id="against-title">Beside {other.file}</h2>
          <Against run={run} other={other} difference={report.difference} />
          <TimelineView run={other} classes={otherColors} theme={theme} selected={otherSelected} label={`Timeline of ${other.file}`} testId="timeline-against" select={setOtherSelected} open={() => {}} made={() => {}} />
        </section>
      )}
      {run.tasks.count > 0 && (
        <>
          <Why run={run} />
          <MemoryView run={run} theme={theme} noBytes={report.no_bytes} />
        </>
      )}
      <Pictures pictures={run.pictures} />
      {run.tasks.count > 0 ? <Tables run={run} show={show} /> : <Known run={run} />}
      <footer class="weak">
        Chipless {report.chipless}.{run.tasks.count > 0 && ` Times are simulated: estimates by the figures of the machine (chipless machine ${run.target}).`}
      </footer>
      {help && <Help close={() => setHelp(false)} />}
    </main>
  );
}

/** The next task after the selected one whose name is the text, or else has it in its name, operation or layer. */
function next(run: Run, text: string, selected: number | null): number | null {
  const { count } = run.tasks;
  const wanted = text.toLowerCase();
  const from = selected === null ? 0 : selected + 1;
  const search = (holds: (task: number) => boolean): number | null => {
    for (let i = 0; i < count; i++) {
      const task = (from + i) % count;
      if (holds(task)) return task;
    }
    return null;
  };
  const has = (name: string | null) => name?.toLowerCase().includes(wanted) ?? false;
  return (
    search((task) => taskName(run, task).toLowerCase() === wanted) ??
    search((task) => has(taskName(run, task)) || has(run.operations[run.tasks.operation[task]]) || has(layerName(run, task)))
  );
}

function Tables({ run, show }: { run: Run; show: (task: number) => void }) {
  const { tasks } = run;
  const waits = useMemo(() => {
    const found: number[] = [];
    for (let i = 0; i < tasks.count; i++) if (tasks.reason[i] > 0) found.push(i);
    return found;
  }, [run]);
  const transfers = useMemo(() => {
    const found: number[] = [];
    for (let i = 0; i < tasks.count; i++) if (tasks.moved[i] > 0) found.push(i);
    return found;
  }, [run]);
  const columns = useMemo(() => {
    const pace = (task: number) => (tasks.end[task] > tasks.start[task] ? (1e12 * tasks.moved[task]) / (tasks.end[task] - tasks.start[task]) : 0);
    const ns = (ps: (row: number) => number, name: string): Column => ({ name, number: true, value: (row) => ps(row) / 1000, show: (row) => time(ps(row)) });
    const waited = (task: number) => tasks.start[task] - (task > run.lanes[tasks.lane[task]].first ? tasks.end[task - 1] : 0);
    const task: Column[] = [
      { name: "Task", value: (row) => taskName(run, row) },
      { name: "Operation", value: (row) => run.operations[tasks.operation[row]] },
      ...(run.layers.length > 0 ? [{ name: "Layer", value: (row: number) => layerName(run, row) ?? "" }] : []),
      ns((row) => tasks.start[row], "Start"),
      ns((row) => tasks.end[row] - tasks.start[row], "Duration"),
      ns(waited, "Waited"),
      ns((row) => tasks.slack[row], "Slack"),
      { name: "Critical", value: (row) => (tasks.critical[row] ? "yes" : "") },
      { name: "Read", number: true, value: (row) => tasks.read[row], show: (row) => bytes(tasks.read[row]) },
      { name: "Written", number: true, value: (row) => tasks.written[row], show: (row) => bytes(tasks.written[row]) },
    ];
    const layer: Column[] = [
      { name: "Layer", value: (row) => run.layer_rows[row].layer },
      { name: "Tasks", number: true, value: (row) => run.layer_rows[row].tasks },
      ns((row) => run.layer_rows[row].busy_ns * 1000, "Busy"),
      ns((row) => run.layer_rows[row].critical_ns * 1000, "On the critical path"),
    ];
    const wait: Column[] = [
      { name: "Task", value: (row) => taskName(run, waits[row]) },
      { name: "Reason", value: (row) => REASONS[tasks.reason[waits[row]]] },
      { name: "On", value: (row) => (tasks.on[waits[row]] ? run.syncs[tasks.on[waits[row]] - 1] : "") },
      { name: "Let go by", value: (row) => (tasks.by[waits[row]] ? taskName(run, tasks.by[waits[row]] - 1) : "") },
      ns((row) => waited(waits[row]), "Waited"),
    ];
    const transfer: Column[] = [
      { name: "Task", value: (row) => taskName(run, transfers[row]) },
      { name: "Operation", value: (row) => run.operations[tasks.operation[transfers[row]]] },
      ns((row) => tasks.start[transfers[row]], "Start"),
      ns((row) => tasks.end[transfers[row]] - tasks.start[transfers[row]], "Duration"),
      { name: "Bytes", number: true, value: (row) => tasks.moved[transfers[row]], show: (row) => bytes(tasks.moved[transfers[row]]) },
      { name: "Bytes a second", number: true, value: (row) => pace(transfers[row]), show: (row) => `${bytes(Math.round(pace(transfers[row])))}/s` },
    ];
    const link: Column[] = [
      { name: "Link", value: (row) => run.resources[row].name },
      { name: "Bytes", number: true, value: (row) => run.resources[row].bytes, show: (row) => bytes(run.resources[row].bytes) },
      { name: "Utilization", number: true, value: (row) => run.resources[row].utilization, show: (row) => `${(100 * run.resources[row].utilization).toFixed(1)} %` },
    ];
    return { task, layer, wait, transfer, link };
  }, [run, waits, transfers]);
  return (
    <section aria-labelledby="tables-title">
      <h2 id="tables-title">Tables</h2>
      {run.layer_rows.length > 0 && <Table title="Layers" testId="table-layers" rows={run.layer_rows.length} columns={columns.layer} />}
      <Table title="Tasks" testId="table-tasks" rows={tasks.count} columns={columns.task} open={show} />
      {waits.length > 0 && <Table title="Waits" testId="table-waits" rows={waits.length} columns={columns.wait} open={(row) => show(waits[row])} />}
      {transfers.length > 0 && <Table title="Transfers" testId="table-transfers" rows={transfers.length} columns={columns.transfer} open={(row) => show(transfers[row])} />}
      {run.resources.length > 0 && <Table title="Links" testId="table-links" rows={run.resources.length} columns={columns.link} />}
    </section>
  );
}

function Help({ close }: { close: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  const keys = [
    ["w, s", "zoom in, out"],
    ["a, d", "pan left, right"],
    ["Home", "the whole run"],
    ["Arrow keys", "from task to task, from lane to lane"],
    ["Enter", "open the details of the selected task"],
    ["/", "search"],
    ["Escape", "close, or select nothing"],
    ["Wheel", "zoom; with Shift, pan"],
    ["Drag, pinch", "pan, zoom"],
  ];
  return (
    <div class="help" role="dialog" aria-modal="true" aria-labelledby="help-title" data-testid="help">
      <h2 id="help-title">Keys</h2>
      <table>
        <tbody>
          {keys.map(([key, what]) => (
            <tr key={key}>
              <th scope="row">{key}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>Bars are tasks, coloured by layer or operation. Hatched: the server waited. Underlined: on the critical path. Crowded lanes show how busy each pixel is.</p>
      <button ref={button} onClick={close}>
        Close
      </button>
    </div>
  );
}
