import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Theme } from "./colors";
import { bytes, count, percent, time } from "./format";
import { REASONS, type Run, layerName, taskName, waited } from "./report";
import { paintOverview } from "./paint";
import { type Events, type Shown, type Target, Timeline } from "./timeline";

interface Props {
  run: Run;
  whole: number;
  colors: ReadonlyMap<string, string>;
  theme: Theme;
  shown: Shown;
  label: string;
  testId: string;
  events: Omit<Events, "hover" | "viewed">;
  keys: (event: KeyboardEvent, timeline: Timeline) => void;
  made: (timeline: Timeline) => void;
}

const WAITS = { none: "", sync: "waits for a signal", release: "waits to be released", server: "waits for its server", end: "waits for the end" };

/** A timeline with its minimap and legend. */
export function TimelineView({ run, whole, colors, theme, shown, label, testId, events, keys, made }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const timeline = useRef<Timeline | null>(null);
  const latest = useRef(events);
  latest.current = events;
  const [view, setView] = useState<[number, number]>([0, 1]);
  const [tip, setTip] = useState<{ target: Target; x: number; y: number } | null>(null);

  useEffect(() => {
    if (!canvas.current || !scroller.current || !spacer.current) return;
    // What the timeline calls is that of the last rendering.
    const current: Events = {
      select: (task) => latest.current.select(task),
      selectLayer: (layer) => latest.current.selectLayer(layer),
      selectArea: (area) => latest.current.selectArea(area),
      pin: (row) => latest.current.pin(row),
      fold: (row) => latest.current.fold(row),
      moved: () => {
        setTip(null);
        latest.current.moved();
      },
      viewed: (start, end) => setView([start, end]),
      hover: (target, x, y) => setTip(target && { target, x, y }),
    };
    const one = new Timeline(run, whole, canvas.current, scroller.current, spacer.current, colors, theme, current);
    timeline.current = one;
    setView([one.start, one.end]);
    one.show(shown);
    made(one);
  }, [run]);
  useEffect(() => timeline.current?.recolor(colors, theme), [colors, theme]);
  useLayoutEffect(() => timeline.current?.show(shown), [shown]);

  const zoomed = `${time(view[0])} to ${time(view[1])}`;
  return (
    <div class="timeline">
      <Minimap timeline={timeline.current} view={view} theme={theme} />
      <div
        class="lanes"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label={`${label}: ${run.lanes.length} lanes, ${zoomed}. w and s zoom, a and d pan, arrows move from task to task, question mark lists all keys.`}
        data-testid={testId}
        onKeyDown={(event) => timeline.current && keys(event, timeline.current)}
      >
        <div ref={spacer}>
          <canvas ref={canvas} />
        </div>
        {tip && <Tip run={run} {...tip} wide={scroller.current?.clientWidth ?? 0} top={scroller.current?.scrollTop ?? 0} high={scroller.current?.clientHeight ?? 0} />}
      </div>
      <p class="weak range">{zoomed}</p>
      <p class="visually-hidden" role="status" aria-live="polite">
        {shown.selected === null ? "No task is selected." : `${taskName(run, shown.selected)}, ${run.operations[run.tasks.operation[shown.selected]]}`}
      </p>
      <Legend run={run} colors={colors} theme={theme} />
    </div>
  );
}

interface TipProps {
  run: Run;
  target: Target;
  x: number;
  y: number;
  wide: number;
  top: number;
  high: number;
}

/** What is under the pointer, on the side of it with more room. */
function Tip({ run, target, x, y, wide, top, high }: TipProps) {
  const lines = said(run, target);
  if (lines.length === 0) return null;
  const side = x > wide / 2 ? { right: `${wide - x + 12}px` } : { left: `${x + 12}px` };
  const edge = y > high / 2 ? { bottom: `${high - y - top + 8}px` } : { top: `${y + top + 14}px` };
  return (
    <div class="tip" data-testid="tip" aria-hidden="true" style={{ ...side, ...edge, maxWidth: `${Math.max(x, wide - x) - 24}px` }}>
      {lines.map((line, i) => (
        <div key={i} class={i === 0 ? "" : "weak"}>
          {line}
        </div>
      ))}
    </div>
  );
}

function said(run: Run, target: Target): string[] {
  const { tasks } = run;
  if (!target) return [];
  if ("layer" in target) return [run.layers[target.layer], "Click for its sums"];
  if ("row" in target) {
    const busy = target.row.lanes.reduce((sum, lane) => sum + run.lanes[lane].busy[run.lanes[lane].count], 0);
    const share = percent(busy / Math.max(1, run.latency_ps * target.row.lanes.length));
    const act = target.pin ? (target.row.pinned ? "Click to unpin" : "Click to pin to the top") : target.row.kind === "group" ? `${count(target.row.lanes.length, "lane")}; click to ${target.row.open ? "fold" : "open"}` : "";
    return [target.row.name, ...(target.row.lanes.length > 0 ? [`busy ${share}`] : []), ...(act ? [act] : [])];
  }
  const task = "task" in target ? target.task : target.wait;
  const on = tasks.on[task] ? ` on ${run.syncs[tasks.on[task] - 1]}` : "";
  const by = tasks.by[task] ? `, until ${taskName(run, tasks.by[task] - 1)} signals` : "";
  const wait = tasks.reason[task] > 0 ? [`waited ${time(waited(run, task))} (${REASONS[tasks.reason[task]]})${on}${by}`] : [];
  if ("wait" in target) return [`${run.lanes[tasks.lane[task]].name} stands still before ${taskName(run, task)}`, ...wait];
  const layer = layerName(run, task);
  return [
    `${taskName(run, task)} ${run.operations[tasks.operation[task]]}`,
    ...(layer ? [`layer ${layer}`] : []),
    `${time(tasks.end[task] - tasks.start[task])} from ${time(tasks.start[task])}`,
    ...(tasks.read[task] + tasks.written[task] > 0 ? [`${bytes(tasks.read[task])} read, ${bytes(tasks.written[task])} written`] : []),
    ...wait,
    tasks.critical[task] ? "on the critical path" : `slack ${time(tasks.slack[task])}`,
  ];
}

const LEGEND = 24;

function Legend({ run, colors, theme }: { run: Run; colors: ReadonlyMap<string, string>; theme: Theme }) {
  const [all, setAll] = useState(false);
  const reasons = useMemo(() => new Set(run.tasks.reason), [run]);
  const operations = [...colors].filter(([name]) => run.operations.includes(name));
  return (
    <ul class="legend" aria-label="Colours of the timeline, by operation" data-testid="legend">
      {operations.slice(0, all ? operations.length : LEGEND).map(([name, color]) => (
        <li key={name} data-color={color}>
          <i style={{ background: color }} />
          {name}
        </li>
      ))}
      {operations.length > LEGEND && !all && (
        <li>
          <button class="link" onClick={() => setAll(true)}>
            and {operations.length - LEGEND} more
          </button>
        </li>
      )}
      {REASONS.map(
        (reason, i) =>
          i > 0 &&
          reasons.has(i) && (
            <li key={reason}>
              <i class={`hatched ${reason}`} />
              {WAITS[reason]}
            </li>
          ),
      )}
      <li>
        <i style={{ background: theme.critical, height: "4px" }} />
        critical path
      </li>
    </ul>
  );
}

interface MinimapProps {
  timeline: Timeline | null;
  view: [number, number];
  theme: Theme;
}

/** The whole run in a strip. The visible part is marked; a click or a drag moves it. */
function Minimap({ timeline, view, theme }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const overview = useRef<{ key: string; canvas: HTMLCanvasElement } | null>(null);

  useEffect(() => {
    const target = canvas.current;
    const context = target?.getContext("2d");
    if (!target || !context || !timeline) return;
    const wide = (target.width = target.clientWidth);
    const high = (target.height = target.clientHeight);
    const key = `${wide} ${high} ${theme.dark}`;
    if (overview.current?.key !== key) {
      const made = document.createElement("canvas");
      made.width = wide;
      made.height = high;
      const paint = made.getContext("2d");
      if (!paint) return;
      paint.fillStyle = theme.weak;
      paintOverview(timeline, paint, wide, high);
      overview.current = { key, canvas: made };
    }
    context.drawImage(overview.current.canvas, 0, 0);
    const from = Math.max(0, view[0] / timeline.whole) * wide;
    const to = Math.min(1, view[1] / timeline.whole) * wide;
    context.fillStyle = theme.dark ? "rgba(0,0,0,.55)" : "rgba(255,255,255,.65)";
    context.fillRect(0, 0, from, high);
    context.fillRect(to, 0, wide - to, high);
    context.strokeStyle = theme.accent;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), high - 1);
  }, [timeline, view, theme]);

  const move = (event: PointerEvent) => {
    if (!timeline || !canvas.current || event.buttons === 0) return;
    const at = (event.offsetX / canvas.current.clientWidth) * timeline.whole;
    const half = (timeline.end - timeline.start) / 2;
    timeline.setView(at - half, at + half);
  };
  return <canvas class="minimap" ref={canvas} data-testid="minimap" role="img" aria-label="The whole run; the visible part is marked" onPointerDown={move} onPointerMove={move} />;
}
