import { type Theme, luminance } from "./colors";
import { time } from "./format";
import { ROW, type Row } from "./lanes";
import { type Lane, REASONS, busyUntil, firstEndingAfter, firstStartingFrom } from "./report";
// A painter is made by its timeline, and names it as a type only.
import type { Timeline } from "./timeline";

export const AXIS = 24;
const BAR = 16;
/** Tasks a pixel beyond which a lane is drawn as shares of its columns, not as bars. */
const CROWDED = 2;
/** How much is left of what does not stand out. */
const DIM = 0.18;
const FONT = "12px system-ui, sans-serif";

/** How a timeline is drawn. */
export class Painter {
  /** The width of the longest name of a row, with room for its marks. */
  readonly labels: number;
  private context: CanvasRenderingContext2D;
  /** The colour of each operation of the run, and of text on it. */
  private fill: string[];
  private ink: string[];
  private hatches: (CanvasPattern | null)[] = [];
  private strip = document.createElement("canvas");
  /** Busy picoseconds of tasks that stand out, up to each task of all lanes. */
  private lit: { of: Uint8Array; busy: Float64Array } | null = null;

  constructor(
    private view: Timeline,
    colors: ReadonlyMap<string, string>,
    private theme: Theme,
  ) {
    const context = view.canvas.getContext("2d");
    if (!context) throw new Error("the browser has no canvas");
    this.context = context;
    this.fill = view.run.operations.map((name) => colors.get(name) ?? theme.weak);
    this.ink = this.fill.map((color) => (luminance(color) < 0.18 ? "#ffffff" : "#000000"));
    context.font = FONT;
    const names = [...view.run.lanes.map((lane) => lane.name), "layers"];
    this.labels = 56 + Math.max(...names.map((name) => context.measureText(name).width));
  }

  paint() {
    const { context, view, theme } = this;
    const ratio = window.devicePixelRatio || 1;
    const wide = view.canvas.clientWidth;
    const high = view.scroller.clientHeight;
    view.canvas.style.height = `${high}px`;
    const [width, height] = [Math.round(wide * ratio), Math.round(high * ratio)];
    if (view.canvas.width !== width || view.canvas.height !== height) Object.assign(view.canvas, { width, height });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    context.font = FONT;
    context.textBaseline = "middle";
    this.emphasise();
    const { pinned, others } = view.layout;
    const fixed = AXIS + pinned.length * ROW;
    this.paintRows(others, fixed, high);
    context.fillStyle = theme.panel;
    context.fillRect(0, AXIS, wide, fixed - AXIS);
    this.paintRows(pinned, AXIS, fixed);
    if (pinned.length > 0) {
      context.fillStyle = theme.weak;
      context.fillRect(0, fixed - 1, wide, 1);
    }
    this.clipped(AXIS, high, () => {
      this.paintArea(high);
      this.paintFlows();
    });
    this.paintAxis(wide);
  }

  /** Sums over the tasks that stand out, once for each choice of them. */
  private emphasise() {
    const { lit } = this.view.shown;
    if (lit === (this.lit?.of ?? null)) return;
    this.lit = null;
    if (!lit) return;
    const { start, end, count } = this.view.run.tasks;
    const busy = new Float64Array(count + 1);
    for (let task = 0; task < count; task++) busy[task + 1] = busy[task] + (lit[task] ? end[task] - start[task] : 0);
    this.lit = { of: lit, busy };
  }

  private clipped(from: number, to: number, paint: () => void, left = this.view.gutter) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(left, from, this.view.canvas.clientWidth - left, to - from);
    context.clip();
    paint();
    context.restore();
  }

  private paintRows(rows: Row[], from: number, to: number) {
    const { view, theme, context } = this;
    const visible = rows.filter((row) => view.y(row) + ROW > from && view.y(row) < to);
    this.clipped(from, to, () => {
      this.paintGrid(from, to);
      for (const row of visible) {
        const y = view.y(row);
        context.fillStyle = theme.line;
        context.fillRect(view.gutter, y + ROW - 1, view.width, 0.5);
        if (row.kind === "layers") this.paintLayers(y);
        else if (row.kind === "group") this.paintShares(row.lanes, y, theme.weak);
        else this.paintLane(view.run.lanes[row.lanes[0]], row.lanes[0], y);
      }
    });
    this.clipped(from, to, () => visible.forEach((row) => this.paintName(row)), 0);
  }

  private paintName(row: Row) {
    const { view, theme, context } = this;
    const middle = view.y(row) + ROW / 2;
    context.fillStyle = theme.text;
    const left = row.kind === "group" ? 6 : row.inGroup ? 18 : 6;
    const mark = row.kind === "group" ? (row.open ? "▾ " : "▸ ") : "";
    context.fillText(`${mark}${row.name}`, left, middle, view.gutter - left - 24);
    context.fillStyle = row.pinned ? theme.critical : theme.weak;
    context.fillText(row.pinned ? "★" : "☆", view.gutter - 18, middle);
  }

  /** Instants of the axis: one, two or five times a power of ten apart. */
  private *ticks(): Generator<number> {
    const { start, end, width } = this.view;
    const wanted = ((end - start) * 90) / width;
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1e-9)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted) ?? 10 * power;
    for (let at = Math.ceil(start / step) * step; at <= end; at += step) yield at;
  }

  private paintGrid(from: number, to: number) {
    const { view, theme, context } = this;
    context.fillStyle = theme.line;
    for (const at of this.ticks()) context.fillRect(Math.round(view.x(at)), from, 1, to - from);
    context.fillStyle = theme.critical;
    context.fillRect(Math.round(view.x(view.run.latency_ps)), from, 1.5, to - from);
  }

  private paintAxis(wide: number) {
    const { view, theme, context } = this;
    context.fillStyle = theme.ground;
    context.fillRect(0, 0, wide, AXIS);
    context.fillStyle = theme.weak;
    for (const at of this.ticks()) {
      if (view.x(at) >= view.gutter) context.fillText(time(at), view.x(at) + 3, AXIS / 2);
    }
    context.fillStyle = theme.line;
    context.fillRect(0, AXIS - 1, wide, 1);
    const { area } = view.shown;
    if (!area) return;
    this.clipped(0, AXIS, () => {
      context.fillStyle = theme.accent;
      context.fillRect(view.x(area.start), AXIS - 4, Math.max(2, view.x(area.end) - view.x(area.start)), 3);
    });
  }

  private paintLayers(y: number) {
    const { view, theme, context } = this;
    for (const { layer, start, end } of view.spans) {
      const x = view.x(start);
      const wide = Math.max(1, view.x(end) - x);
      if (x + wide < view.gutter || x > view.gutter + view.width) continue;
      const chosen = layer === view.shown.layer;
      context.fillStyle = chosen ? theme.accent : theme.line;
      context.fillRect(x, y + 2, Math.max(0.5, wide - 1), ROW - 5);
      this.paintLabel(view.run.layers[layer], x, wide, y, chosen ? theme.ground : theme.text);
    }
  }

  private paintLane(lane: Lane, number: number, y: number) {
    const { view } = this;
    const first = firstEndingAfter(view.run, lane, view.start);
    const last = firstStartingFrom(view.run, lane, view.end);
    if (last - first > CROWDED * view.width) this.paintShares([number], y, null);
    else this.paintBars(lane, first, Math.min(last, lane.count - 1), y);
  }

  private paintBars(lane: Lane, first: number, last: number, y: number) {
    const { context, theme, view, lit } = this;
    const { tasks, operations } = view.run;
    const top = y + (ROW - BAR) / 2;
    for (let task = lane.first + first; task <= lane.first + last; task++) {
      const x = view.x(tasks.start[task]);
      const wide = Math.max(view.x(tasks.end[task]) - x, 1);
      const before = task > lane.first ? view.x(tasks.end[task - 1]) : view.x(0);
      context.globalAlpha = lit && !lit.of[task] ? DIM : 1;
      if (tasks.reason[task] > 0 && x - before > 3) {
        context.fillStyle = this.hatched(tasks.reason[task]);
        context.fillRect(before, top + 4, x - before, BAR - 8);
      }
      context.fillStyle = this.fill[tasks.operation[task]];
      context.fillRect(x, top, wide, BAR);
      if (tasks.critical[task]) {
        context.fillStyle = theme.critical;
        context.fillRect(x, top + BAR - 3, wide, 3);
      }
      if (wide > 4) {
        context.strokeStyle = theme.ground;
        context.lineWidth = 0.5;
        context.strokeRect(x, top, wide, BAR);
      }
      this.paintLabel(operations[tasks.operation[task]], x, wide, y, this.ink[tasks.operation[task]]);
      context.globalAlpha = 1;
      if (task === view.shown.selected) {
        context.strokeStyle = theme.accent;
        context.lineWidth = 2;
        context.strokeRect(x - 1, top - 1, wide + 2, BAR + 2);
      }
    }
  }

  private paintLabel(text: string, x: number, wide: number, y: number, ink: string) {
    const { context, view } = this;
    const left = Math.max(x, view.gutter) + 4;
    const room = Math.min(x + wide, view.gutter + view.width) - left - 4;
    if (room < 24) return;
    context.save();
    context.beginPath();
    context.rect(left, y, room, ROW);
    context.clip();
    context.fillStyle = ink;
    context.fillText(text, left, y + ROW / 2 + 0.5);
    context.restore();
  }

  /** One row of pixels, each as opaque as its column is busy: in one colour, or in that of the task in its middle. What does not stand out counts little. */
  private paintShares(lanes: number[], y: number, color: string | null) {
    const { view, context, lit } = this;
    const { run } = view;
    const columns = Math.max(1, Math.floor(view.width));
    Object.assign(this.strip, { width: columns, height: 1 });
    const strip = this.strip.getContext("2d");
    if (!strip) return;
    const image = strip.createImageData(columns, 1);
    const step = (view.end - view.start) / columns;
    const shares = new Float64Array(columns);
    for (const number of lanes) {
      const lane = run.lanes[number];
      let before = this.busy(lane, view.start);
      for (let x = 0; x < columns; x++) {
        const until = this.busy(lane, view.start + (x + 1) * step);
        shares[x] += (until - before) / step / lanes.length;
        before = until;
      }
    }
    const lane = run.lanes[lanes[0]];
    for (let x = 0; x < columns; x++) {
      if (shares[x] <= 0) continue;
      const task = Math.min(firstEndingAfter(run, lane, view.start + (x + 0.5) * step), lane.count - 1) + lane.first;
      const rgb = parseInt((color ?? this.fill[run.tasks.operation[task]]).slice(1), 16);
      image.data.set([rgb >> 16, (rgb >> 8) & 255, rgb & 255, Math.max(lit ? 8 : 24, Math.round(255 * Math.min(1, shares[x])))], 4 * x);
    }
    strip.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.strip, view.gutter, y + (ROW - BAR) / 2, view.width, BAR);
  }

  /** Busy picoseconds of a lane up to an instant, of which only a little counts where a task does not stand out. */
  private busy(lane: Lane, at: number): number {
    const { run } = this.view;
    const all = busyUntil(run, lane, at);
    if (!this.lit) return all;
    const { of, busy } = this.lit;
    const i = firstEndingAfter(run, lane, at);
    const task = lane.first + i;
    const running = i < lane.count && of[task] ? Math.max(0, at - run.tasks.start[task]) : 0;
    return DIM * all + (1 - DIM) * (busy[task] - busy[lane.first] + running);
  }

  /** A pattern for each reason: strokes to the right, to the left, upright. */
  private hatched(reason: number): CanvasPattern | string {
    if (!this.hatches[reason]) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const paint = tile.getContext("2d");
      if (!paint) return this.theme.line;
      paint.strokeStyle = this.theme.weak;
      paint.lineWidth = 1;
      paint.beginPath();
      for (const shift of [-6, 0, 6]) {
        const name = REASONS[reason];
        const [from, to] = name === "sync" ? [shift, shift + 6] : name === "release" ? [shift + 6, shift] : [shift + 3, shift + 3];
        paint.moveTo(from, 6);
        paint.lineTo(to, 0);
      }
      paint.stroke();
      this.hatches[reason] = this.context.createPattern(tile, "repeat");
    }
    return this.hatches[reason] ?? this.theme.line;
  }

  private paintArea(high: number) {
    const { view, theme, context } = this;
    const { area } = view.shown;
    if (!area) return;
    const [x0, x1] = [view.x(area.start), view.x(area.end)];
    context.fillStyle = theme.accent;
    context.globalAlpha = 0.12;
    if (area.lanes.length === 0) context.fillRect(x0, AXIS, x1 - x0, high);
    const rows = new Set(area.lanes.map((lane) => view.layout.of[lane]));
    for (const row of rows) if (row) context.fillRect(x0, view.y(row), x1 - x0, ROW);
    context.globalAlpha = 1;
    for (const x of [x0, x1]) context.fillRect(x, AXIS, 1, high);
  }

  /** Arrows from the task whose signal ended the selected task's wait, and to those that the selected one let start. */
  private paintFlows() {
    const { view, theme, context } = this;
    const { selected } = view.shown;
    if (selected === null) return;
    const { tasks } = view.run;
    const pairs = view.followers(selected).map((task) => [selected, task]);
    if (tasks.by[selected]) pairs.push([tasks.by[selected] - 1, selected]);
    context.strokeStyle = context.fillStyle = theme.accent;
    context.lineWidth = 1;
    for (const [from, to] of pairs) {
      const [rowFrom, rowTo] = [from, to].map((task) => view.layout.of[tasks.lane[task]]);
      if (!rowFrom || !rowTo) continue;
      const x0 = view.x(Math.min(tasks.end[from], tasks.start[to]));
      const x1 = view.x(tasks.start[to]);
      const y0 = view.y(rowFrom) + ROW / 2;
      const y1 = view.y(rowTo) + ROW / 2;
      const bend = Math.max(12, Math.abs(x1 - x0) / 2);
      context.beginPath();
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 6, y1 - 3);
      context.lineTo(x1 - 6, y1 + 3);
      context.closePath();
      context.fill();
    }
  }
}

/** The whole run, as the share of lanes that are busy in each column of pixels. */
export function paintOverview({ run, whole }: Timeline, context: CanvasRenderingContext2D, wide: number, high: number) {
  const step = whole / Math.max(1, wide);
  const before = run.lanes.map(() => 0);
  for (let x = 0; x < wide; x++) {
    let busy = 0;
    run.lanes.forEach((lane, i) => {
      const until = busyUntil(run, lane, (x + 1) * step);
      busy += until - before[i];
      before[i] = until;
    });
    const share = Math.min(1, busy / step / Math.max(1, run.lanes.length));
    context.fillRect(x, high - share * (high - 2), 1, share * (high - 2));
  }
}
