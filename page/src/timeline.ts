import type { Theme } from "./colors";
import { type Layout, ROW, type Row, type Span, layerSpans, layout } from "./lanes";
import { AXIS, Painter } from "./paint";
import { type Run, firstEndingAfter, taskAt } from "./report";
import type { Area } from "./sums";

/** What lies under a point. */
export type Target = { task: number } | { wait: number } | { layer: number } | { row: Row; pin: boolean } | null;

export interface Events {
  select: (task: number | null) => void;
  selectLayer: (layer: number) => void;
  selectArea: (area: Area | null) => void;
  pin: (row: Row) => void;
  fold: (row: Row) => void;
  hover: (target: Target, x: number, y: number) => void;
  /** The view changed, here or by what it follows. */
  viewed: (start: number, end: number) => void;
  /** It changed here. */
  moved: () => void;
}

/** What is shown besides the run. */
export interface Shown {
  selected: number | null;
  layer: number | null;
  area: Area | null;
  /** 1 for tasks that stand out; null where all are alike. */
  lit: Uint8Array | null;
  pinned: ReadonlySet<string>;
  folded: ReadonlySet<string>;
}

/** The timeline's canvas: what part of the run is visible, and what the pointer does there. A frame costs width × rows × log tasks, whatever the zoom. */
export class Timeline {
  start = 0;
  end: number;
  layout: Layout;
  readonly spans: Span[];
  shown: Shown = { selected: null, layer: null, area: null, lit: null, pinned: new Set(), folded: new Set() };
  private painter: Painter;
  private followed: { task: number; found: number[] } | null = null;
  private frame = 0;
  private waitingForFrame: (() => void)[] = [];
  /** Where the pointer is while it is over the canvas. */
  private pointer: number | null = null;

  constructor(
    readonly run: Run,
    /** The end of the axis in picoseconds: that of the longer run where there are two. */
    readonly whole: number,
    readonly canvas: HTMLCanvasElement,
    readonly scroller: HTMLElement,
    private spacer: HTMLElement,
    colors: ReadonlyMap<string, string>,
    theme: Theme,
    readonly events: Events,
  ) {
    this.end = whole;
    this.layout = layout(run, this.shown.pinned, this.shown.folded);
    this.spans = layerSpans(run);
    this.painter = new Painter(this, colors, theme);
    this.listen();
  }

  get gutter(): number {
    return Math.min(this.painter.labels, Math.max(90, this.canvas.clientWidth * 0.28));
  }

  get width(): number {
    return Math.max(1, this.canvas.clientWidth - this.gutter);
  }

  recolor(colors: ReadonlyMap<string, string>, theme: Theme) {
    this.painter = new Painter(this, colors, theme);
    this.draw();
  }

  show(shown: Shown) {
    if (shown.pinned !== this.shown.pinned || shown.folded !== this.shown.folded) this.layout = layout(this.run, shown.pinned, shown.folded);
    this.shown = shown;
    this.spacer.style.height = `${this.height}px`;
    this.draw();
  }

  /** The height of all rows with the axis. */
  get height(): number {
    return AXIS + (this.layout.pinned.length + this.layout.others.length) * ROW + 4;
  }

  /** Shows a part of the run; `follows` where another timeline did so first. */
  setView(start: number, end: number, follows = false) {
    const span = Math.min(Math.max(end - start, 1), 4 * this.whole);
    const middle = (start + end) / 2;
    this.start = Math.min(Math.max(middle - span / 2, -this.whole), 2 * this.whole - span);
    this.end = this.start + span;
    this.events.viewed(this.start, this.end);
    if (!follows) this.events.moved();
    this.draw();
  }

  /** Around the pointer where it is over the timeline, as in other viewers of traces. */
  zoom(factor: number, around = this.pointer === null ? (this.start + this.end) / 2 : this.at(this.pointer)) {
    this.setView(around - (around - this.start) * factor, around + (this.end - around) * factor);
  }

  pan(share: number) {
    const by = (this.end - this.start) * share;
    this.setView(this.start + by, this.end + by);
  }

  /** Fills the view with the selected area, task or layer; with the whole run where nothing is selected, or already fills it. */
  fit() {
    const { selected, layer, area } = this.shown;
    const { start, end } = this.run.tasks;
    const span = this.spans.find((span) => span.layer === layer);
    const around = (from: number, to: number): [number, number] => [from - 0.1 * (to - from), to + 0.1 * (to - from)];
    let view: [number, number] = [0, this.whole];
    if (area) view = around(area.start, area.end);
    else if (selected !== null) view = around(start[selected], Math.max(end[selected], start[selected] + 1));
    else if (span) view = around(span.start, Math.max(span.last, span.start + 1));
    const same = Math.abs(view[0] - this.start) + Math.abs(view[1] - this.end) < 1e-6 * this.whole;
    this.setView(...(same ? ([0, this.whole] as [number, number]) : view));
  }

  /** Brings a task into sight, with room around it. */
  reveal(task: number) {
    const { start, end } = this.run.tasks;
    const length = Math.max(end[task] - start[task], 1);
    if (end[task] < this.start || start[task] > this.end || this.x(end[task]) - this.x(start[task]) < 4) {
      this.setView(start[task] - 8 * length, end[task] + 8 * length);
    }
    this.scrollTo(task);
  }

  private scrollTo(task: number) {
    const row = this.layout.of[this.run.tasks.lane[task]];
    if (!row || row.pinned) return;
    const pinned = this.layout.pinned.length * ROW;
    const { scrollTop, clientHeight } = this.scroller;
    if (row.top < scrollTop) this.scroller.scrollTop = row.top;
    else if (AXIS + pinned + row.top + ROW > scrollTop + clientHeight) this.scroller.scrollTop = AXIS + pinned + row.top + ROW - clientHeight;
  }

  /** The middle of a task's bar in the viewport, scrolled into sight; null where it is not visible. */
  locate(task: number): { x: number; y: number } | null {
    const { start, end, lane } = this.run.tasks;
    const from = Math.max(start[task], this.start);
    const to = Math.min(end[task], this.end);
    const row = this.layout.of[lane[task]];
    if (to < from || !row) return null;
    this.scrollTo(task);
    this.canvas.scrollIntoView({ block: "nearest" });
    let box = this.canvas.getBoundingClientRect();
    const y = () => box.top + this.y(row) + ROW / 2;
    if (y() < 0 || y() > window.innerHeight) {
      window.scrollBy({ top: y() - window.innerHeight / 2, behavior: "instant" });
      box = this.canvas.getBoundingClientRect();
    }
    return { x: box.left + this.x((from + to) / 2), y: y() };
  }

  /** The top of a row on the canvas. */
  y(row: Row): number {
    const below = row.pinned ? 0 : this.layout.pinned.length * ROW - this.scroller.scrollTop;
    return AXIS + below + row.top;
  }

  x(at: number): number {
    return this.gutter + ((at - this.start) / (this.end - this.start)) * this.width;
  }

  at(x: number): number {
    return this.start + ((x - this.gutter) / this.width) * (this.end - this.start);
  }

  rowAt(y: number): Row | null {
    const { pinned, others } = this.layout;
    if (y < AXIS) return null;
    const n = Math.floor((y - AXIS) / ROW);
    if (n < pinned.length) return pinned[n];
    return others[Math.floor((y - AXIS + this.scroller.scrollTop) / ROW) - pinned.length] ?? null;
  }

  /** What is under a point of the canvas; bars thinner than a pixel are found within three. */
  hit(x: number, y: number): Target {
    const row = this.rowAt(y);
    if (!row) return null;
    if (x < this.gutter) return { row, pin: x > this.gutter - 22 };
    const at = this.at(x);
    if (row.kind === "layers") {
      const span = this.spans.find((span) => span.start <= at && at < span.end);
      return span ? { layer: span.layer } : null;
    }
    if (row.kind === "group") return { row, pin: false };
    const lane = this.run.lanes[row.lanes[0]];
    const task = taskAt(this.run, lane, at, (3 / this.width) * (this.end - this.start));
    if (task !== null) return { task };
    const next = lane.first + firstEndingAfter(this.run, lane, at);
    return at >= 0 && next < lane.first + lane.count && this.run.tasks.reason[next] > 0 ? { wait: next } : null;
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
      this.painter.paint();
      for (const resolve of this.waitingForFrame.splice(0)) resolve();
    });
  }

  /** Tasks whose wait a task ended. */
  followers(task: number): number[] {
    if (this.followed?.task === task) return this.followed.found;
    const { by, count } = this.run.tasks;
    const found: number[] = [];
    for (let i = 0; i < count && found.length < 200; i++) if (by[i] === task + 1) found.push(i);
    this.followed = { task, found };
    return found;
  }

  /** Moves the selection: within its lane, or to the task of another visible lane that runs at the same time. */
  step(key: string) {
    const { run } = this;
    const visible = [...this.layout.pinned, ...this.layout.others].filter((row) => row.kind === "lane" && run.lanes[row.lanes[0]].count > 0).map((row) => row.lanes[0]);
    const current = this.shown.selected ?? (visible.length > 0 ? run.lanes[visible[0]].first : null);
    if (current === null) return;
    const number = run.tasks.lane[current];
    const lane = run.lanes[number];
    let next: number | null = null;
    if (this.shown.selected === null) next = current;
    else if (key === "ArrowLeft") next = Math.max(current - 1, lane.first);
    else if (key === "ArrowRight") next = Math.min(current + 1, lane.first + lane.count - 1);
    else {
      const other = visible[Math.max(0, visible.indexOf(number)) + (key === "ArrowUp" ? -1 : 1)];
      if (other !== undefined) next = taskAt(run, run.lanes[other], run.tasks.start[current], Infinity);
    }
    if (next !== null) {
      this.events.select(next);
      this.reveal(next);
    }
  }

  private listen() {
    const { canvas } = this;
    const pointers = new Map<number, { x: number; y: number }>();
    /** Where an area began to be drawn: on the axis it has all lanes. */
    let area: { x: number; y: number } | null = null;
    let dragged = 0;
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const at = { x: event.offsetX, y: event.offsetY };
      pointers.set(event.pointerId, at);
      if (pointers.size > 1) return;
      dragged = 0;
      area = at.x > this.gutter && (event.shiftKey || at.y < AXIS) ? at : null;
      this.events.hover(null, 0, 0);
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = { x: event.offsetX, y: event.offsetY };
      this.pointer = now.x > this.gutter ? now.x : null;
      const before = pointers.get(event.pointerId);
      if (!before) return this.hover(now.x, now.y);
      pointers.set(event.pointerId, now);
      dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1] ?? now;
        const old = Math.max(8, Math.abs(before.x - other.x));
        const distance = Math.max(8, Math.abs(now.x - other.x));
        this.zoom(old / distance, this.at((now.x + other.x) / 2));
        dragged = 99;
      } else if (dragged > 4 && area) this.events.selectArea(this.areaOf(area, now));
      else if (dragged > 4) {
        this.pan((before.x - now.x) / this.width);
        this.scroller.scrollTop += before.y - now.y;
      }
    });
    const released = (event: PointerEvent) => {
      const down = pointers.delete(event.pointerId);
      if (down && event.type === "pointerup" && dragged <= 4) this.click(event.offsetX, event.offsetY);
    };
    canvas.addEventListener("pointerup", released);
    canvas.addEventListener("pointercancel", released);
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.events.hover(null, 0, 0);
    });
    this.scroller.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
  }

  /** Ctrl zooms, Shift and sideways pan; else the lanes scroll, and the page where they have come to an end. */
  private wheel(event: WheelEvent) {
    if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY / 400), this.at(event.offsetX));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / this.width);
    else return;
    event.preventDefault();
  }

  private hover(x: number, y: number) {
    const target = this.hit(x, y);
    this.canvas.style.cursor = y < AXIS ? "col-resize" : target ? "pointer" : "grab";
    this.events.hover(target, x, y);
  }

  private click(x: number, y: number) {
    const target = this.hit(x, y);
    if (y < AXIS) this.events.selectArea(null);
    else if (!target) this.events.select(null);
    else if ("task" in target) this.events.select(target.task);
    else if ("wait" in target) this.events.select(target.wait);
    else if ("layer" in target) this.events.selectLayer(target.layer);
    else if (target.pin) this.events.pin(target.row);
    else if (target.row.kind === "group") this.events.fold(target.row);
  }

  /** The part of the run between two points; all lanes where the first one is on the axis. */
  private areaOf(from: { x: number; y: number }, to: { x: number; y: number }): Area {
    const instants = [from.x, to.x].map((x) => Math.min(this.whole, Math.max(0, this.at(x))));
    const [low, high] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
    const rows = from.y < AXIS ? [] : [...this.layout.pinned, ...this.layout.others].filter((row) => this.y(row) + ROW > low && this.y(row) < high);
    return {
      start: Math.min(...instants),
      end: Math.max(Math.min(...instants) + 1, ...instants),
      lanes: [...new Set(rows.flatMap((row) => (row.kind === "group" && row.open ? [] : row.lanes)))],
    };
  }
}
