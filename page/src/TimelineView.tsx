import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Classes, type Theme } from "./colors";
import { time } from "./format";
import { REASONS, type Run, taskName } from "./report";
import { Timeline, paintOverview } from "./timeline";

interface Props {
  run: Run;
  classes: Classes;
  theme: Theme;
  selected: number | null;
  label: string;
  testId: string;
  select: (task: number | null) => void;
  open: () => void;
  made: (timeline: Timeline) => void;
}

const WAITS = { none: "", sync: "waits for a signal", release: "waits to be released", server: "waits for its server", end: "waits for the end" };

/** A timeline with its minimap and legend. */
export function TimelineView({ run, classes, theme, selected, label, testId, select, open, made }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const timeline = useRef<Timeline | null>(null);
  const [view, setView] = useState<[number, number]>([0, 1]);

  useEffect(() => {
    if (!canvas.current || !scroller.current) return;
    const moved = () => timeline.current && setView([timeline.current.start, timeline.current.end]);
    const one = new Timeline(run, classes, canvas.current, scroller.current, theme, { select, moved });
    timeline.current = one;
    moved();
    made(one);
  }, [run]);
  useEffect(() => timeline.current?.recolor(theme), [theme]);
  useLayoutEffect(() => timeline.current?.select(selected), [selected]);

  const keys = (event: KeyboardEvent) => {
    const one = timeline.current;
    if (!one || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      w: () => one.zoom(0.7),
      s: () => one.zoom(1 / 0.7),
      a: () => one.pan(-0.15),
      d: () => one.pan(0.15),
      Home: () => one.setView(0, one.whole),
      Enter: open,
      Escape: () => select(null),
    };
    const action = actions[event.key] ?? (event.key.startsWith("Arrow") ? () => one.step(event.key) : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  };

  const zoomed = `${time(view[0])} to ${time(view[1])}`;
  return (
    <div class="timeline">
      <Minimap run={run} timeline={timeline.current} view={view} theme={theme} />
      <div
        class="lanes"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-roledescription="timeline"
        aria-label={`${label}: ${run.lanes.length} lanes, ${zoomed}. w and s zoom, a and d pan, arrows move from task to task.`}
        data-testid={testId}
        onKeyDown={keys}
      >
        <canvas ref={canvas} />
      </div>
      <div class="row">
        <button onClick={() => timeline.current?.zoom(0.5)}>Zoom in</button>
        <button onClick={() => timeline.current?.zoom(2)}>Zoom out</button>
        <button onClick={() => timeline.current?.setView(0, timeline.current.whole)}>Whole run</button>
        <label>
          <input type="checkbox" onChange={(event) => timeline.current?.light(event.currentTarget.checked)} /> Critical path alone
        </label>
        <span class="weak">{zoomed}</span>
      </div>
      <p class="visually-hidden" role="status" aria-live="polite">
        {selected === null ? "No task is selected." : `${taskName(run, selected)}, ${run.operations[run.tasks.operation[selected]]}`}
      </p>
      <Legend run={run} classes={classes} theme={theme} />
    </div>
  );
}

function Legend({ run, classes, theme }: { run: Run; classes: Classes; theme: Theme }) {
  const reasons = useMemo(() => new Set(run.tasks.reason), [run]);
  const used = useMemo(() => {
    const found = new Set<number>();
    for (let task = 0; task < run.tasks.count; task++) found.add(classes.of(task));
    return found;
  }, [run, classes]);
  const shown = classes.names.map((name, i) => ({ name, i })).filter(({ i }) => used.has(i));
  return (
    <ul class="legend" aria-label={`Colours of the timeline, by ${classes.kind}`}>
      {shown.slice(0, 24).map(({ name, i }) => (
        <li key={i}>
          <i style={{ background: theme.palette[i % theme.palette.length] }} />
          {name}
        </li>
      ))}
      {shown.length > 24 && <li class="weak">and {shown.length - 24} more; colours repeat</li>}
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
  run: Run;
  timeline: Timeline | null;
  view: [number, number];
  theme: Theme;
}

/** The whole run in a strip. The visible part is marked; a click or a drag moves it. */
function Minimap({ run, timeline, view, theme }: MinimapProps) {
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
      paint.fillStyle = theme.palette[0];
      paintOverview(run, timeline.whole, paint, wide, high);
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
  }, [run, timeline, view, theme]);

  const move = (event: PointerEvent) => {
    if (!timeline || !canvas.current || event.buttons === 0) return;
    const at = (event.offsetX / canvas.current.clientWidth) * timeline.whole;
    const half = (timeline.end - timeline.start) / 2;
    timeline.setView(at - half, at + half);
  };
  return <canvas class="minimap" ref={canvas} data-testid="minimap" role="img" aria-label="The whole run; the visible part is marked" onPointerDown={move} onPointerMove={move} />;
}
