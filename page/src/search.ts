import type { Run } from "./report";

/** Which tasks have a text in their name, operation or layer: 1 for each of them. Upper and lower case are the same. */
export function matching(run: Run, text: string): Uint8Array {
  const { tasks } = run;
  const wanted = text.toLowerCase();
  const has = (name: string) => name.toLowerCase().includes(wanted);
  const operations = run.operations.map(has);
  const layers = run.layers.map(has);
  const found = new Uint8Array(tasks.count);
  for (const lane of run.lanes) {
    const queue = run.queues[lane.queue].name.toLowerCase();
    const all = queue.includes(wanted);
    // Only these can match across the name of the queue and the index.
    const byIndex = /[[\]\d]/.test(wanted);
    for (let task = lane.first; task < lane.first + lane.count; task++) {
      const layer = tasks.layer[task];
      if (all || operations[tasks.operation[task]] || (layer > 0 && layers[layer - 1]) || (byIndex && `${queue}[${tasks.index[task]}]`.includes(wanted))) found[task] = 1;
    }
  }
  return found;
}

/** The next match before or after a task, around the end of the run; null without any. */
export function nextMatch(found: Uint8Array, from: number | null, direction: 1 | -1): number | null {
  const { length } = found;
  const start = from ?? (direction === 1 ? -1 : length);
  for (let i = 1; i <= length; i++) {
    const task = (((start + direction * i) % length) + length) % length;
    if (found[task]) return task;
  }
  return null;
}
