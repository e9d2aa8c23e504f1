import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Theme } from "./colors";
import { bytes, time } from "./format";
import { around, placed } from "./network";
import { layerSpans } from "./lanes";
import type { Run } from "./report";

const WIDE = 150;
const HIGH = 40;
const GAP = 46;

interface Props {
  run: Run;
  theme: Theme;
  /** The selected layer, or that of the selected task. */
  layer: number | null;
  select: (layer: number) => void;
}

/** The network: which layer reads what another one wrote. A click or Enter selects a layer and its tasks; arrow keys follow the edges. */
export function NetworkView({ run, theme, layer, select }: Props) {
  const marked = useRef<SVGGElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const order = useMemo(() => layerSpans(run).map((span) => span.layer), [run]);
  const shown = useMemo(() => around(run.layers.length, run.edges, layer ?? order[0] ?? 0), [run, run.layers.length > 300 ? layer : null]);
  const nodes = useMemo(() => placed(shown, run.edges, order), [shown]);
  const rows = useMemo(() => new Map(run.layer_rows.map((row) => [row.layer, row])), [run]);
  const at = new Map(nodes.map((node) => [node.layer, { x: 4 + node.column * (WIDE + GAP), y: 4 + node.row * (HIGH + 10) }]));
  const edges = run.edges.filter(({ from, to }) => at.has(from) && at.has(to));
  const most = Math.max(1, ...run.layer_rows.map((row) => row.critical_ns));
  const wide = Math.max(...nodes.map((node) => node.column + 1)) * (WIDE + GAP);
  const high = Math.max(...nodes.map((node) => node.row + 1)) * (HIGH + 10) + 8;

  useEffect(() => {
    const place = layer === null ? undefined : at.get(layer);
    const box = scroller.current;
    if (place && box) box.scrollTo(place.x + WIDE / 2 - box.clientWidth / 2, place.y + HIGH / 2 - box.clientHeight / 2);
  }, [layer, nodes]);
  // The keyboard stays on the layer that it moved to.
  useEffect(() => {
    if (scroller.current?.contains(document.activeElement)) marked.current?.focus();
  }, [layer]);

  const keys = (event: KeyboardEvent, node: number) => {
    const near = (list: (number | undefined)[]) => list.find((one) => one !== undefined && at.has(one));
    const beside = (step: number) => nodes.find((one) => one.column === here?.column && one.row === here.row + step)?.layer;
    const here = nodes.find((one) => one.layer === node);
    const next: Record<string, () => number | undefined> = {
      ArrowRight: () => near(edges.filter((edge) => edge.from === node).map((edge) => edge.to)),
      ArrowLeft: () => near(edges.filter((edge) => edge.to === node).map((edge) => edge.from)),
      ArrowUp: () => beside(-1),
      ArrowDown: () => beside(1),
      Enter: () => node,
      " ": () => node,
    };
    const to = next[event.key]?.();
    if (!next[event.key]) return;
    event.preventDefault();
    if (to !== undefined) select(to);
  };
  const entry = layer !== null && at.has(layer) ? layer : nodes[0]?.layer;
  return (
    <section aria-labelledby="network-title" data-testid="network">
      <h2 id="network-title">Network</h2>
      <p class="weak">
        Layers by what they read of each other. The red line is a layer's time on the critical path. {shown.size < run.layers.length && `${shown.size} of ${run.layers.length} layers, around the selected one.`}
      </p>
      <div class="network" ref={scroller}>
        <svg width={wide} height={high} role="group" aria-label={`${nodes.length} layers and ${edges.length} edges`}>
          {edges.map(({ from, to, bytes: moved }) => {
            const [a, b] = [at.get(from), at.get(to)];
            if (!a || !b) return null;
            const [x0, y0, x1, y1] = [a.x + WIDE, a.y + HIGH / 2, b.x, b.y + HIGH / 2];
            const bend = Math.max(20, Math.abs(x1 - x0) / 2);
            const near = from === layer || to === layer;
            return (
              <path key={`${from} ${to}`} d={`M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`} fill="none" stroke={near ? theme.accent : theme.weak} stroke-width={near ? 2 : 1} opacity={near || layer === null ? 1 : 0.45}>
                <title>{`${run.layers[from]} to ${run.layers[to]}: ${bytes(moved)}`}</title>
              </path>
            );
          })}
          {nodes.map((node) => {
            const { x, y } = at.get(node.layer) ?? { x: 0, y: 0 };
            const name = run.layers[node.layer];
            const row = rows.get(name);
            const said = `${name}: ${time((row?.busy_ns ?? 0) * 1000)} busy, ${time((row?.critical_ns ?? 0) * 1000)} on the critical path`;
            const chosen = node.layer === layer;
            // SVG knows its attributes by their small letters alone.
            return (
              <g key={node.layer} ref={chosen ? marked : undefined} role="button" tabindex={node.layer === entry ? 0 : -1} aria-pressed={chosen} aria-label={said} data-layer={name} onClick={() => select(node.layer)} onKeyDown={(event) => keys(event, node.layer)}>
                <title>{said}</title>
                <rect x={x} y={y} width={WIDE} height={HIGH} rx={4} fill={theme.panel} stroke={chosen ? theme.accent : theme.weak} stroke-width={chosen ? 3 : 1} />
                <rect x={x + 1} y={y + HIGH - 5} width={((row?.critical_ns ?? 0) / most) * (WIDE - 2)} height={4} fill={theme.critical} />
                <text x={x + 8} y={y + 22} fill={theme.text} font-size={12}>
                  {name.length > 20 ? `…${name.slice(-19)}` : name}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
    </section>
  );
}
