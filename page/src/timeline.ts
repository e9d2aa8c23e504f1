import { type Classes, type Theme } from "./colors";
import { time } from "./format";
import { type Lane, type Run, busyUntil, firstEndingAfter, firstStartingFrom, taskAt, taskName } from "./report";

const ROW = 22;
const BAR = 16;
const AXIS = 24;
/** Tasks a pixel beyond which a lane is drawn as shares of its columns, not as bars. */
const CROWDED = 2;

export interface Events {
  select: (task: number | null) => void;
  moved: () => void;
}

/** The timeline's canvas: what part of the run is visible, and how it is drawn. A frame costs width × lanes × log tasks, whatever the zoom. */
export class Timeline {
  start = 0;
  end: number;
  selected: number | null = null;
  private frame = 0;
  private waitingForFrame: (() => void)[] = [];
  /** Tasks off the critical path are dimmed. */
  lit = false;
  private hatches: (CanvasPattern | null)[] = [];
  private strip = document.createElement("canvas");
  private theme: Theme;

  constructor(
    readonly run: Run,
    readonly classes: Classes,
    readonly canvas: HTMLCanvasElement,
    readonly scroller: HTMLElement,
    theme: Theme,
    private events: Events,
  ) {
    this.theme = theme;
    this.end = this.whole;
    this.listen();
  }

  get whole(): number {
    const last = this.run.lanes.reduce((end, lane) => (lane.count ? Math.max(end, this.run.tasks.end[lane.first + lane.count - 1]) : end), 0);
    return Math.max(1, this.run.latency_ps, last);
  }

  private get gutter(): number {
    return this.canvas.clientWidth < 600 ? 76 : 132;
  }

  private get width(): number {
    return Math.max(1, this.canvas.clientWidth - this.gutter);
  }

  recolor(theme: Theme) {
    this.theme = theme;
    this.hatches = [];
    this.draw();
  }

  setView(start: number, end: number) {
    const least = 1;
    const span = Math.min(Math.max(end - start, least), 4 * this.whole);
    const middle = (start + end) / 2;
    const low = -this.whole;
    const high = 2 * this.whole;
    this.start = Math.min(Math.max(middle - span / 2, low), high - span);
    this.end = this.start + span;
    this.events.moved();
    this.draw();
  }

  zoom(factor: number, around = (this.start + this.end) / 2) {
    this.setView(around - (around - this.start) * factor, around + (this.end - around) * factor);
  }

  pan(share: number) {
    const by = (this.end - this.start) * share;
    this.setView(this.start + by, this.end + by);
  }

  /** Dims what is off the critical path, or shows everything alike. */
  light(lit: boolean) {
    this.lit = lit;
    this.draw();
  }

  select(task: number | null) {
    this.selected = task;
    this.draw();
  }

  /** Brings a task into sight, with room around it. */
  reveal(task: number) {
    const { start, end } = this.run.tasks;
    const length = Math.max(end[task] - start[task], 1);
    if (end[task] < this.start || start[task] > this.end || this.x(end[task]) - this.x(start[task]) < 4) {
      this.setView(start[task] - 8 * length, end[task] + 8 * length);
    }
    this.scrollTo(this.run.tasks.lane[task]);
  }

  private scrollTo(lane: number) {
    const top = AXIS + lane * ROW;
    const { scrollTop, clientHeight } = this.scroller;
    if (top - AXIS < scrollTop) this.scroller.scrollTop = top - AXIS;
    else if (top + ROW > scrollTop + clientHeight) this.scroller.scrollTop = top + ROW - clientHeight;
  }

  /** The middle of a task's bar in the viewport, scrolled into sight; null where its time is not visible. */
  locate(task: number): { x: number; y: number } | null {
    const { start, end, lane } = this.run.tasks;
    const from = Math.max(start[task], this.start);
    const to = Math.min(end[task], this.end);
    if (to < from) return null;
    this.scrollTo(lane[task]);
    this.canvas.scrollIntoView({ block: "nearest" });
    let box = this.canvas.getBoundingClientRect();
    const y = () => box.top + AXIS + lane[task] * ROW + ROW / 2;
    if (y() < 0 || y() > window.innerHeight) {
      window.scrollBy({ top: y() - window.innerHeight / 2, behavior: "instant" });
      box = this.canvas.getBoundingClientRect();
    }
    return { x: box.left + this.x((from + to) / 2), y: y() };
  }

  private x(at: number): number {
    return this.gutter + ((at - this.start) / (this.end - this.start)) * this.width;
  }

  private at(x: number): number {
    return this.start + ((x - this.gutter) / this.width) * (this.end - this.start);
  }

  /** The task under a point of the canvas; bars thinner than a pixel are found within three. */
  hit(x: number, y: number): number | null {
    const lane = this.run.lanes[Math.floor((y - AXIS) / ROW)];
    if (!lane || y < AXIS || x < this.gutter) return null;
    return taskAt(this.run, lane, this.at(x), (3 / this.width) * (this.end - this.start));
  }

  /** Resolves when the next frame has been drawn. */
  drawn(): Promise<void> {
    return new Promise((resolve) => {
      this.waitingForFrame.push(resolve);
      this.draw();
    });
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
      for (const resolve of this.waitingForFrame.splice(0)) resolve();
    });
  }

  private paint() {
    const ratio = window.devicePixelRatio || 1;
    const height = AXIS + this.run.lanes.length * ROW + 4;
    const wide = this.canvas.clientWidth;
    this.canvas.style.height = `${height}px`;
    if (this.canvas.width !== Math.round(wide * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(wide * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const top = this.scroller.scrollTop;
    context.clearRect(0, 0, wide, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const firstLane = Math.max(0, Math.floor((top - AXIS) / ROW));
    const lastLane = Math.min(this.run.lanes.length, Math.ceil((top + this.scroller.clientHeight) / ROW) + 1);
    context.save();
    context.beginPath();
    context.rect(this.gutter, 0, this.width, height);
    context.clip();
    this.paintGrid(context, height);
    for (let i = firstLane; i < lastLane; i++) this.paintLane(context, this.run.lanes[i], AXIS + i * ROW);
    this.paintFlows(context);
    context.restore();
    context.fillStyle = this.theme.text;
    for (let i = firstLane; i < lastLane; i++) {
      context.fillText(this.run.lanes[i].name, 6, AXIS + i * ROW + ROW / 2, this.gutter - 12);
    }
    this.paintAxis(context, top);
  }

  /** Instants of the axis: one, two or five times a power of ten apart. */
  private *ticks(): Generator<number> {
    const wanted = ((this.end - this.start) * 90) / this.width;
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1e-9)));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted) ?? 10 * power;
    for (let at = Math.ceil(this.start / step) * step; at <= this.end; at += step) yield at;
  }

  private paintGrid(context: CanvasRenderingContext2D, height: number) {
    context.fillStyle = this.theme.line;
    for (const at of this.ticks()) context.fillRect(Math.round(this.x(at)), AXIS, 1, height);
    context.fillStyle = this.theme.critical;
    context.fillRect(Math.round(this.x(this.run.latency_ps)), AXIS, 1.5, height);
  }

  private paintAxis(context: CanvasRenderingContext2D, top: number) {
    context.fillStyle = this.theme.ground;
    context.fillRect(0, top, this.canvas.clientWidth, AXIS);
    context.fillStyle = this.theme.weak;
    for (const at of this.ticks()) {
      const x = this.x(at);
      if (x >= this.gutter) context.fillText(time(at), x + 3, top + AXIS / 2);
    }
    context.fillStyle = this.theme.line;
    context.fillRect(0, top + AXIS - 1, this.canvas.clientWidth, 1);
  }

  private paintLane(context: CanvasRenderingContext2D, lane: Lane, y: number) {
    context.fillStyle = this.theme.line;
    context.fillRect(this.gutter, y + ROW - 1, this.width, 0.5);
    const first = firstEndingAfter(this.run, lane, this.start);
    const last = firstStartingFrom(this.run, lane, this.end);
    if (last - first > CROWDED * this.width) this.paintShares(context, lane, y);
    else this.paintBars(context, lane, first, last, y);
  }

  private color(task: number): string {
    const { palette } = this.theme;
    return palette[this.classes.of(task) % palette.length];
  }

  private paintBars(context: CanvasRenderingContext2D, lane: Lane, first: number, last: number, y: number) {
    const { tasks } = this.run;
    const top = y + (ROW - BAR) / 2;
    for (let i = first; i <= Math.min(last, lane.count - 1); i++) {
      const task = lane.first + i;
      const x0 = this.x(tasks.start[task]);
      const x1 = this.x(tasks.end[task]);
      const before = i > 0 ? this.x(tasks.end[task - 1]) : this.x(0);
      if (tasks.reason[task] > 0 && x0 - before > 3) {
        context.globalAlpha = this.lit && !tasks.critical[task] ? 0.25 : 1;
        context.fillStyle = this.hatched(context, tasks.reason[task]);
        context.fillRect(before, top + 4, x0 - before, BAR - 8);
      }
      const wide = Math.max(x1 - x0, 1);
      context.globalAlpha = this.lit && !tasks.critical[task] ? 0.2 : 1;
      context.fillStyle = this.color(task);
      context.fillRect(x0, top, wide, BAR);
      if (tasks.critical[task]) {
        context.fillStyle = this.theme.critical;
        context.fillRect(x0, top + BAR - 3, wide, 3);
      }
      if (wide > 4) {
        context.strokeStyle = this.theme.ground;
        context.lineWidth = 0.5;
        context.strokeRect(x0, top, wide, BAR);
      }
      if (wide > 34) this.paintLabel(context, task, x0, wide, top);
      context.globalAlpha = 1;
      if (task === this.selected) {
        context.strokeStyle = this.theme.accent;
        context.lineWidth = 2;
        context.strokeRect(x0 - 1, top - 1, wide + 2, BAR + 2);
      }
    }
  }

  private paintLabel(context: CanvasRenderingContext2D, task: number, x: number, wide: number, top: number) {
    const left = Math.max(x, this.gutter) + 4;
    const room = x + wide - left - 4;
    if (room < 24) return;
    const text = this.run.operations[this.run.tasks.operation[task]];
    context.save();
    context.beginPath();
    context.rect(left, top, room, BAR);
    context.clip();
    context.fillStyle = dark(this.color(task)) ? "#ffffff" : "#000000";
    context.fillText(text, left, top + BAR / 2 + 0.5);
    context.restore();
  }

  /** A crowded lane: one row of pixels, each as opaque as its column is busy, in the colour of the task in its middle. */
  private paintShares(context: CanvasRenderingContext2D, lane: Lane, y: number) {
    const columns = Math.max(1, Math.floor(this.width));
    this.strip.width = columns;
    this.strip.height = 1;
    const strip = this.strip.getContext("2d");
    if (!strip) return;
    const image = strip.createImageData(columns, 1);
    const step = (this.end - this.start) / columns;
    let before = busyUntil(this.run, lane, this.start);
    for (let x = 0; x < columns; x++) {
      const at = this.start + x * step;
      const until = busyUntil(this.run, lane, at + step);
      const share = Math.min(1, (until - before) / step);
      before = until;
      if (share <= 0) continue;
      const task = Math.min(firstEndingAfter(this.run, lane, at + step / 2), lane.count - 1) + lane.first;
      const color = parseInt(this.color(task).slice(1), 16);
      image.data[4 * x] = color >> 16;
      image.data[4 * x + 1] = (color >> 8) & 255;
      image.data[4 * x + 2] = color & 255;
      image.data[4 * x + 3] = Math.max(24, Math.round(255 * share));
    }
    strip.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.strip, this.gutter, y + (ROW - BAR) / 2, this.width, BAR);
  }

  /** A pattern for each reason: strokes to the right, to the left, upright. */
  private hatched(context: CanvasRenderingContext2D, reason: number): CanvasPattern | string {
    if (!this.hatches[reason]) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const paint = tile.getContext("2d");
      if (!paint) return this.theme.line;
      paint.strokeStyle = this.theme.weak;
      paint.lineWidth = 1;
      paint.beginPath();
      for (const shift of [-6, 0, 6]) {
        const [from, to] = reason === 1 ? [shift, shift + 6] : reason === 2 ? [shift + 6, shift] : [shift + 3, shift + 3];
        paint.moveTo(from, 6);
        paint.lineTo(to, 0);
      }
      paint.stroke();
      this.hatches[reason] = context.createPattern(tile, "repeat");
    }
    return this.hatches[reason] ?? this.theme.line;
  }

  /** Arrows from the task whose signal ended the selected task's wait, and to those that the selected one let start. */
  private paintFlows(context: CanvasRenderingContext2D) {
    if (this.selected === null) return;
    const { tasks } = this.run;
    const pairs = this.followers(this.selected).map((task) => [this.selected as number, task]);
    if (tasks.by[this.selected]) pairs.push([tasks.by[this.selected] - 1, this.selected]);
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 1;
    for (const [from, to] of pairs) {
      const x0 = this.x(Math.min(tasks.end[from], tasks.start[to]));
      const x1 = this.x(tasks.start[to]);
      const y0 = AXIS + tasks.lane[from] * ROW + ROW / 2;
      const y1 = AXIS + tasks.lane[to] * ROW + ROW / 2;
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
      context.fillStyle = this.theme.accent;
      context.fill();
    }
  }

  /** Tasks whose wait a task ended. */
  followers(task: number): number[] {
    const { by, count } = this.run.tasks;
    const found: number[] = [];
    for (let i = 0; i < count && found.length < 200; i++) if (by[i] === task + 1) found.push(i);
    return found;
  }

  /** Moves the selection: within its lane, or to the task of another lane that runs at the same time. */
  step(key: string) {
    const { run } = this;
    const current = this.selected ?? run.lanes.find((lane) => lane.count > 0)?.first;
    if (current === undefined) return;
    const number = run.tasks.lane[current];
    const lane = run.lanes[number];
    let next: number | null = null;
    if (this.selected === null) next = current;
    else if (key === "ArrowLeft") next = Math.max(current - 1, lane.first);
    else if (key === "ArrowRight") next = Math.min(current + 1, lane.first + lane.count - 1);
    else {
      const direction = key === "ArrowUp" ? -1 : 1;
      for (let i = number + direction; run.lanes[i] && next === null; i += direction) {
        if (run.lanes[i].count > 0) next = taskAt(run, run.lanes[i], run.tasks.start[current], Infinity);
      }
    }
    if (next !== null) {
      this.events.select(next);
      this.reveal(next);
    }
  }

  private listen() {
    const { canvas } = this;
    const pointers = new Map<number, { x: number; y: number }>();
    let dragged = 0;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.pan((event.deltaX || event.deltaY) / this.width);
        } else {
          this.zoom(Math.exp(event.deltaY / 400), this.at(event.offsetX));
        }
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      if (pointers.size === 1) dragged = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const now = { x: event.offsetX, y: event.offsetY };
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
        if (other) {
          const old = Math.max(8, Math.abs(before.x - other.x));
          const distance = Math.max(8, Math.abs(now.x - other.x));
          this.zoom(old / distance, this.at((now.x + other.x) / 2));
        }
        dragged = 99;
      } else {
        dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
        if (dragged > 4) {
          this.pan((before.x - now.x) / this.width);
          this.scroller.scrollTop += before.y - now.y;
        }
      }
      pointers.set(event.pointerId, now);
    });
    const released = (event: PointerEvent) => {
      const down = pointers.delete(event.pointerId);
      if (down && event.type === "pointerup" && dragged <= 4) {
        this.events.select(this.hit(event.offsetX, event.offsetY));
      }
    };
    canvas.addEventListener("pointerup", released);
    canvas.addEventListener("pointercancel", released);
    canvas.addEventListener("pointermove", (event) => {
      const task = pointers.size === 0 ? this.hit(event.offsetX, event.offsetY) : null;
      const { tasks, operations } = this.run;
      canvas.title =
        task === null
          ? ""
          : `${taskName(this.run, task)}: ${operations[tasks.operation[task]]}, ${time(tasks.end[task] - tasks.start[task])}`;
      canvas.style.cursor = task === null ? "grab" : "pointer";
    });
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }
}

/** Whether white text is easier to read on a colour than black. */
function dark(color: string): boolean {
  const n = parseInt(color.slice(1), 16);
  const linear = [n >> 16, (n >> 8) & 255, n & 255].map((v) => (v / 255) ** 2.2);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.22;
}

/** The whole run, as the share of lanes that are busy in each column of pixels. */
export function paintOverview(run: Run, whole: number, context: CanvasRenderingContext2D, wide: number, high: number) {
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
