import type { Run } from "./report";

// Okabe and Ito's colours, told apart with every kind of colour blindness. Those that are too pale for a white page have a dark outline.
const LIGHT = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#6b6b6b"];
const DARK = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00", "#7aa6ff", "#a8a8a8"];

export interface Theme {
  dark: boolean;
  palette: string[];
  text: string;
  weak: string;
  line: string;
  ground: string;
  accent: string;
  critical: string;
}

export function theme(): Theme {
  const dark = window.matchMedia("screen and (prefers-color-scheme: dark)").matches;
  return dark
    ? { dark, palette: DARK, text: "#eeeeee", weak: "#a8a8a8", line: "#3a3a3a", ground: "#111111", accent: "#ffffff", critical: "#ff6b5e" }
    : { dark, palette: LIGHT, text: "#1b1b1b", weak: "#5c5c5c", line: "#d8d8d8", ground: "#ffffff", accent: "#000000", critical: "#c1121f" };
}

/** The classes that give tasks their colours: layers where the run knows them, operations otherwise. */
export interface Classes {
  of: (task: number) => number;
  names: string[];
  kind: "layer" | "operation";
}

export function classes(run: Run): Classes {
  const { tasks } = run;
  return run.layers.length > 0
    ? { kind: "layer", names: ["no layer", ...run.layers], of: (task) => tasks.layer[task] }
    : { kind: "operation", names: run.operations, of: (task) => tasks.operation[task] };
}
