import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Details } from "./Details";
import { Help } from "./Help";
import { MemoryView } from "./MemoryView";
import { NetworkView } from "./NetworkView";
import { Pictures } from "./Pictures";
import { SumsView } from "./SumsView";
import { Against, Known, Summary, Why } from "./Summary";
import { Tables } from "./Tables";
import { TimelineView } from "./TimelineView";
import { readState, writeState } from "./address";
import { operationColors, theme as currentTheme } from "./colors";
import { time } from "./format";
import { groupName, layerSpans, layout } from "./lanes";
import { type PackedReport, type Run } from "./report";
import { matching, nextMatch } from "./search";
import { type Area, areaSums, layerSums } from "./sums";
import type { Events, Shown, Timeline } from "./timeline";

interface Props {
  report: PackedReport;
  run: Run;
  other: Run | null;
  /** Of each task of the run its match in the other one, from 1. */
  matched: Uint32Array | null;
  made: (timeline: Timeline) => void;
}

/** What is selected: one thing at a time. */
interface Focus {
  task: number | null;
  layer: number | null;
  area: Area | null;
}

const NOTHING: Focus = { task: null, layer: null, area: null };

export function App({ report, run, other, matched, made }: Props) {
  const linked = useMemo(() => readState(location.hash, run.tasks.count, run.layers.length, run.lanes.length), []);
  const [theme, setTheme] = useState(currentTheme);
  const [focus, setFocus] = useState<Focus>(linked);
  const [otherTask, setOtherTask] = useState<number | null>(() => match(matched, linked.task));
  const [critical, setCritical] = useState(linked.critical);
  const [query, setQuery] = useState(linked.search);
  const [pinned, setPinned] = useState<ReadonlySet<string>>(() => new Set(linked.pinned));
  const [folded, setFolded] = useState<ReadonlySet<string>>(() => new Set(linked.folded));
  const [oneAxis, setOneAxis] = useState(true);
  const [moves, setMoves] = useState(0);
  const [help, setHelp] = useState(false);
  const timeline = useRef<Timeline | null>(null);
  const beside = useRef<Timeline | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const whole = useMemo(() => Math.max(...[run, other].map((one) => (one ? endOf(one) : 1))), [run, other]);
  const colors = useMemo(() => operationColors(other ? [run, other] : [run], theme.dark), [run, other, theme]);

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
  useEffect(() => {
    const write = () => {
      const one = timeline.current;
      const view: [number, number] | null = one && (one.start !== 0 || one.end !== one.whole) ? [one.start, one.end] : null;
      const state = writeState({ ...focus, view, critical, search: query, pinned: [...pinned], folded: [...folded] });
      history.replaceState(null, "", state ? `#${state}` : location.pathname + location.search);
    };
    // Browsers refuse an address that changes with every frame.
    const timer = setTimeout(write, 200);
    return () => clearTimeout(timer);
  }, [focus, critical, query, pinned, folded, moves]);

  const matches = useMemo(() => (query ? matching(run, query) : null), [run, query]);
  const otherMatches = useMemo(() => (query && other ? matching(other, query) : null), [other, query]);
  const found = useMemo(() => matches?.reduce((sum, one) => sum + one, 0) ?? 0, [matches]);
  const lit = useMemo(() => standOut(run, found > 0 ? matches : null, critical, focus.layer), [run, matches, critical, focus.layer]);
  const otherLayer = other && focus.layer !== null ? other.layers.indexOf(run.layers[focus.layer]) : -1;
  const otherLit = useMemo(() => other && standOut(other, otherMatches, critical, otherLayer < 0 ? null : otherLayer), [other, otherMatches, critical, otherLayer]);
  const otherArea = useMemo(() => focus.area && other && areaOf(focus.area, run, other), [focus.area, other]);
  const shown = useMemo<Shown>(() => ({ selected: focus.task, layer: focus.layer, area: focus.area, lit, pinned, folded }), [focus, lit, pinned, folded]);
  const otherShown = useMemo<Shown>(() => ({ selected: otherTask, layer: otherLayer < 0 ? null : otherLayer, area: otherArea, lit: otherLit, pinned, folded }), [otherTask, otherLayer, otherArea, otherLit, pinned, folded]);

  const select = (task: number | null) => {
    setFocus({ ...NOTHING, task });
    setOtherTask(match(matched, task));
  };
  const selectOther = (task: number | null) => {
    const own = task === null || !matched ? -1 : matched.indexOf(task + 1);
    setFocus({ ...NOTHING, task: own < 0 ? null : own });
    setOtherTask(task);
  };
  const selectLayer = (layer: number | null) => {
    setFocus({ ...NOTHING, layer: layer === null || layer < 0 ? null : layer });
    setOtherTask(null);
  };
  const selectArea = (area: Area | null) => {
    setFocus({ ...NOTHING, area });
    setOtherTask(null);
  };
  const toggle = (set: (change: (old: ReadonlySet<string>) => ReadonlySet<string>) => void, name: string) =>
    set((old) => {
      const now = new Set(old);
      if (!now.delete(name)) now.add(name);
      return now;
    });
  const show = (task: number) => {
    const { name, servers } = run.queues[run.lanes[run.tasks.lane[task]].queue];
    setFolded((old) => (old.has(groupName(name, servers)) ? new Set([...old].filter((one) => one !== groupName(name, servers))) : old));
    select(task);
    // When its group has been opened.
    setTimeout(() => timeline.current?.reveal(task));
  };
  const find = (direction: 1 | -1) => {
    const text = search.current?.value ?? "";
    const all = text === query ? matches : text ? matching(run, text) : null;
    setQuery(text);
    if (!all) return;
    const exact = text === query ? null : exactly(run, text);
    const task = exact ?? nextMatch(all, focus.task, direction);
    if (task !== null) show(task);
  };
  const follow = (leader: Timeline | null, follower: Timeline | null) => {
    if (oneAxis && leader) follower?.setView(leader.start, leader.end, true);
    setMoves((n) => n + 1);
  };
  const events = (of: Run, own: { current: Timeline | null }, following: { current: Timeline | null }): Omit<Events, "hover" | "viewed"> => ({
    select: of === run ? select : selectOther,
    selectLayer: (layer) => selectLayer(of === run ? layer : run.layers.indexOf(of.layers[layer])),
    selectArea: (area) => selectArea(area && of !== run ? areaOf(area, of, run) : area),
    pin: (row) => toggle(setPinned, row.key),
    fold: (row) => toggle(setFolded, row.name),
    moved: () => follow(own.current, following.current),
  });
  const mark = (one: Timeline) => {
    const { tasks } = one.run;
    const { selected, layer } = one.shown;
    const span = one.spans.find((span) => span.layer === layer);
    if (selected !== null) selectArea({ start: tasks.start[selected], end: Math.max(tasks.end[selected], tasks.start[selected] + 1), lanes: [] });
    else if (span) selectArea({ start: span.start, end: Math.max(span.last, span.start + 1), lanes: [] });
    else selectArea({ start: Math.max(0, one.start), end: Math.max(1, Math.min(whole, one.end)), lanes: [] });
  };
  const keys = (event: KeyboardEvent, one: Timeline) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { selected } = one.shown;
    const lane = selected === null ? null : one.run.lanes[one.run.tasks.lane[selected]];
    const queue = lane && one.run.queues[lane.queue];
    const actions: Record<string, () => void> = {
      w: () => one.zoom(0.7),
      s: () => one.zoom(1 / 0.7),
      a: () => one.pan(-0.15),
      d: () => one.pan(0.15),
      f: () => one.fit(),
      m: () => mark(one),
      p: () => lane && toggle(setPinned, lane.name),
      c: () => queue && toggle(setFolded, groupName(queue.name, queue.servers)),
      C: () => setFolded((old) => new Set(old.size > 0 ? [] : layout(run, new Set(), new Set()).others.filter((row) => row.kind === "group").map((row) => row.name))),
      Home: () => one.setView(0, one.whole),
      Enter: () => document.querySelector<HTMLElement>("[data-testid=details]")?.focus(),
      Escape: () => select(null),
    };
    const action = actions[event.key] ?? (event.key.startsWith("Arrow") ? () => one.step(event.key) : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  };
  const currentLayer = focus.layer ?? (focus.task !== null && run.tasks.layer[focus.task] > 0 ? run.tasks.layer[focus.task] - 1 : null);

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
              find(1);
            }}
          >
            <input
              ref={search}
              type="search"
              defaultValue={linked.search}
              placeholder="Task, operation or layer (/)"
              aria-label="Search for a task, operation or layer"
              data-testid="search"
              onInput={(event) => event.currentTarget.value === "" && setQuery("")}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || !event.shiftKey) return;
                event.preventDefault();
                find(-1);
              }}
            />
            <button>Find</button>
            <button type="button" onClick={() => setHelp(true)}>
              Help (?)
            </button>
            <span role="status" data-testid="matches">
              {query && (found === 0 ? `No task, operation or layer has "${query}" in its name.` : `${found.toLocaleString("en")} of ${run.tasks.count.toLocaleString("en")} tasks`)}
            </span>
          </form>
        )}
      </header>
      <Summary run={run} />
      {run.tasks.count > 0 && (
        <section aria-labelledby="timeline-title">
          <h2 id="timeline-title">Timeline</h2>
          <div class="row">
            <button onClick={() => timeline.current?.zoom(0.5)}>Zoom in</button>
            <button onClick={() => timeline.current?.zoom(2)}>Zoom out</button>
            <button onClick={() => timeline.current?.fit()}>Fit selection (f)</button>
            <button onClick={() => timeline.current?.setView(0, whole)}>Whole run</button>
            <button onClick={() => timeline.current && mark(timeline.current)}>Mark for sums (m)</button>
            <label>
              <input type="checkbox" checked={critical} onChange={(event) => setCritical(event.currentTarget.checked)} /> Critical path alone
            </label>
            {other && (
              <label>
                <input type="checkbox" checked={oneAxis} onChange={(event) => setOneAxis(event.currentTarget.checked)} /> One view for both
              </label>
            )}
          </div>
          <div class="split">
            <TimelineView
              run={run}
              whole={whole}
              colors={colors}
              theme={theme}
              shown={shown}
              label="Timeline"
              testId="timeline"
              events={events(run, timeline, beside)}
              keys={keys}
              made={(one) => {
                timeline.current = one;
                if (linked.view) one.setView(...linked.view);
                made(one);
              }}
            />
            <Selection run={run} focus={focus} task={focus.task} timeline={timeline.current} select={show} />
          </div>
        </section>
      )}
      {other && (
        <section data-testid="against" aria-labelledby="against-title">
          <h2 id="against-title">Beside {other.file}</h2>
          <div class="split">
            <TimelineView
              run={other}
              whole={whole}
              colors={colors}
              theme={theme}
              shown={otherShown}
              label={`Timeline of ${other.file}`}
              testId="timeline-against"
              events={events(other, beside, timeline)}
              keys={keys}
              made={(one) => {
                beside.current = one;
                if (timeline.current) one.setView(timeline.current.start, timeline.current.end, true);
              }}
            />
            <Selection run={other} focus={{ task: null, layer: otherShown.layer, area: otherArea }} task={otherTask} timeline={beside.current} select={selectOther} />
          </div>
          <Against run={run} other={other} difference={report.difference} />
        </section>
      )}
      {run.tasks.count > 0 && (
        <>
          <Why run={run} />
          {run.layers.length > 1 && run.edges.length > 0 && <NetworkView run={run} theme={theme} layer={currentLayer} select={selectLayer} />}
          <MemoryView run={run} theme={theme} noBytes={report.no_bytes} />
        </>
      )}
      <Pictures pictures={run.pictures} />
      {run.tasks.count > 0 ? <Tables run={run} show={show} /> : <Known run={run} />}
      <footer class="weak">
        Chipless {report.chipless}.{run.tasks.count > 0 && ` Times are simulated: estimates with the parameters of the machine (chipless machine ${run.target}).`}
      </footer>
      {help && <Help close={() => setHelp(false)} />}
    </main>
  );
}

interface SelectionProps {
  run: Run;
  focus: Focus;
  task: number | null;
  timeline: Timeline | null;
  select: (task: number) => void;
}

/** What is known of the selected area, layer or task. */
function Selection({ run, focus, task, timeline, select }: SelectionProps) {
  const { area, layer } = focus;
  const sums = useMemo(() => (area ? areaSums(run, area) : layer === null ? null : layerSums(run, layer)), [run, area, layer]);
  if (!sums) return <Details run={run} task={task} followers={task === null ? [] : (timeline?.followers(task) ?? [])} select={select} />;
  const ran = area ? null : layerSpans(run).find((span) => span.layer === layer);
  const span = area ?? { start: ran?.start ?? 0, end: ran?.last ?? 0 };
  const lanes = area && area.lanes.length > 0 ? ` on ${area.lanes.length} of ${run.lanes.length} lanes` : "";
  return (
    <aside class="details" data-testid="details" tabIndex={-1}>
      <SumsView title={area ? `Area of ${time(span.end - span.start)}` : `Layer ${run.layers[layer ?? 0]}`} span={span.end - span.start} sums={sums}>
        <p class="weak">
          {time(span.start)} to {time(span.end)}
          {lanes}
        </p>
      </SumsView>
    </aside>
  );
}

function endOf(run: Run): number {
  return run.lanes.reduce((end, lane) => (lane.count ? Math.max(end, run.tasks.end[lane.first + lane.count - 1]) : end), Math.max(1, run.latency_ps));
}

function match(matched: Uint32Array | null, task: number | null): number | null {
  return task === null || !matched?.[task] ? null : matched[task] - 1;
}

/** The task of exactly this name, or null. */
function exactly(run: Run, text: string): number | null {
  const [, queue, index] = /^(.*)\[(\d+)\]$/s.exec(text.trim()) ?? [];
  if (queue === undefined) return null;
  for (const lane of run.lanes) {
    if (run.queues[lane.queue].name.toLowerCase() !== queue.toLowerCase()) continue;
    for (let task = lane.first; task < lane.first + lane.count; task++) if (run.tasks.index[task] === Number(index)) return task;
  }
  return null;
}

/** Tasks that stand out: those that match, on the critical path, of the layer, as far as each is asked for. */
function standOut({ tasks }: Run, matches: Uint8Array | null, critical: boolean, layer: number | null): Uint8Array | null {
  if (!matches && !critical && layer === null) return null;
  return Uint8Array.from({ length: tasks.count }, (_, i) => Number((!matches || matches[i]) && (!critical || tasks.critical[i]) && (layer === null || tasks.layer[i] === layer + 1)));
}

/** The same area of another run: its lanes by their names. */
function areaOf(area: Area, from: Run, to: Run): Area {
  const names = new Set(area.lanes.map((lane) => from.lanes[lane].name));
  return { ...area, lanes: [...to.lanes.keys()].filter((lane) => names.has(to.lanes[lane].name)) };
}
