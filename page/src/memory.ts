import type { Memory } from "./report";

/** The memory to look at first, as a place in the list: a scratchpad of the program before registers and DRAM, and of those the one whose peak comes nearest to its size. */
export function headline(memories: Memory[]): number {
  const kinds: Memory["kind"][] = ["scratchpad", "registers", "HBM", "DRAM"];
  const share = (memory: Memory) => (memory.size ? peakOf(memory).bytes / memory.size : 0);
  const better = (a: Memory, b: Memory) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || share(b) - share(a);
  const used = memories.filter((memory) => memory.live.bytes.length > 0);
  return memories.indexOf(used.sort(better)[0] ?? memories[0]);
}

export function peakOf(memory: Memory): { ps: number; bytes: number } {
  let best = { ps: 0, bytes: 0 };
  memory.live.bytes.forEach((value, i) => {
    if (value > best.bytes) best = { ps: memory.live.ps[i], bytes: value };
  });
  return best;
}
