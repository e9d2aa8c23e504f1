import type { PackedRun } from "./report";

type Edge = PackedRun["edges"][number];

/** A layer where it is drawn: its column by the longest way to it, and its place in the column. */
export interface Placed {
  layer: number;
  column: number;
  row: number;
}

/** A network with more layers is drawn around the one that is looked at. */
const WHOLE = 300;
const AROUND = 60;

/** The layers that are drawn: all of them, or those with the fewest steps to one of them. */
export function around(layers: number, edges: Edge[], middle: number): Set<number> {
  if (layers <= WHOLE) return new Set(Array.from({ length: layers }, (_, i) => i));
  const beside = new Map<number, number[]>();
  for (const { from, to } of edges) {
    beside.set(from, [...(beside.get(from) ?? []), to]);
    beside.set(to, [...(beside.get(to) ?? []), from]);
  }
  const found = new Set([middle]);
  for (const layer of found) {
    for (const next of beside.get(layer) ?? []) if (found.size < AROUND) found.add(next);
  }
  return found;
}

/** Layers in columns: each behind all whose bytes it reads. Edges against the order of first starts do not count: memory is used again. */
export function placed(shown: Set<number>, edges: Edge[], order: number[]): Placed[] {
  const rank = new Map(order.map((layer, i) => [layer, i]));
  const at = (layer: number) => rank.get(layer) ?? Infinity;
  const sources = new Map<number, number[]>();
  for (const { from, to } of edges) {
    if (at(from) < at(to) && shown.has(from)) sources.set(to, [...(sources.get(to) ?? []), from]);
  }
  const columns = new Map<number, number>();
  const filled: number[] = [];
  const out: Placed[] = [];
  for (const layer of [...shown].sort((a, b) => at(a) - at(b) || a - b)) {
    const column = Math.max(-1, ...(sources.get(layer) ?? []).map((from) => columns.get(from) ?? -1)) + 1;
    columns.set(layer, column);
    const row = filled[column] ?? 0;
    filled[column] = row + 1;
    out.push({ layer, column, row });
  }
  return out;
}
