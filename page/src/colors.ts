import type { Run } from "./report";

/** What the page draws with besides the colours of operations. */
export interface Theme {
  dark: boolean;
  text: string;
  weak: string;
  line: string;
  panel: string;
  ground: string;
  accent: string;
  critical: string;
  /** Buffers in the picture of a memory, by their role. */
  roles: Record<string, string>;
}

export function theme(): Theme {
  const dark = window.matchMedia("screen and (prefers-color-scheme: dark)").matches;
  const names = ["input", "output", "constant", "state", "scratch"];
  const roles = Object.fromEntries(hues(names.length, dark).map((color, i) => [names[i], color]));
  return dark
    ? { dark, roles, text: "#eeeeee", weak: "#a8a8a8", line: "#3a3a3a", panel: "#1c1c1c", ground: "#111111", accent: "#ffffff", critical: "#ff6b5e" }
    : { dark, roles, text: "#1b1b1b", weak: "#5c5c5c", line: "#d8d8d8", panel: "#f5f5f5", ground: "#ffffff", accent: "#000000", critical: "#c1121f" };
}

/** The colours of operations, no two alike: greys for those that only move bytes, hues for all others. They follow from the names: how long an
 * operation takes on a machine does not change its colour. */
export function operationColors(runs: Run[], dark: boolean): Map<string, string> {
  const names = new Set<string>();
  const computes = new Set<string>();
  for (const { operations, roofline, tasks } of runs) {
    for (const name of operations) names.add(name);
    for (const roof of roofline) if (roof.ops > 0) computes.add(roof.operation);
    for (let task = 0; task < tasks.count; task++) if (tasks.moved[task] === 0) computes.add(operations[tasks.operation[task]]);
  }
  const sorted = [...names].sort();
  const working = sorted.filter((name) => computes.has(name));
  const moving = sorted.filter((name) => !computes.has(name));
  // A palette that does not grow with the first few names keeps their colours from program to program.
  return new Map([...given(working, hues(Math.max(working.length, 7), dark)), ...given(moving, greys(Math.max(moving.length, 4), dark))]);
}

/** A colour for each name: the one that its hash says, or the next one that no earlier name has. */
function given(names: string[], colors: string[]): [string, string][] {
  const taken = new Set<number>();
  return names.map((name) => {
    let at = hash(name) % colors.length;
    while (taken.has(at)) at = (at + 1) % colors.length;
    taken.add(at);
    return [name, colors[at]];
  });
}

/** FNV-1a of 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}

/** So many colours that stand out from the page: Okabe and Ito's hues first, then hues a golden angle apart in three degrees of lightness. */
export function hues(count: number, dark: boolean): string[] {
  const found = dark
    ? ["#56b4e9", "#e69f00", "#00b488", "#d98fb5", "#f0e442", "#f07030", "#8f9bff"]
    : ["#0072b2", "#b87a00", "#00805d", "#b3568a", "#4b4fb8", "#c44e00", "#7a6f00"];
  const used = new Set(found);
  for (let n = 0; found.length < count; n++) {
    const light = (dark ? [0.74, 0.84, 0.66] : [0.55, 0.45, 0.6])[n % 3];
    const color = oklch(light, 0.09 + 0.03 * (n % 4), (20 + n * 137.508) % 360);
    if (!used.has(color)) found.push(color);
    used.add(color);
  }
  return found.slice(0, count);
}

/** So many greys that differ, as far as 8 bits have any. */
function greys(count: number, dark: boolean): string[] {
  const [from, to] = dark ? [176, 110] : [138, 80];
  return Array.from({ length: count }, (_, i) => {
    const value = Math.round(from + ((to - from) * i) / Math.max(1, count - 1));
    // More greys than there are steps differ in their blue.
    const blue = Math.min(255, value + 6 + Math.floor(i / (Math.abs(to - from) + 1)));
    return hex([value, value, blue]);
  });
}

/** A colour of Björn Ottosson's OKLCH, clipped to sRGB. */
function oklch(light: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s];
  const coded = (value: number) => (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055);
  return hex(linear.map((value) => Math.round(255 * coded(Math.min(1, Math.max(0, value))))));
}

function hex(values: number[]): string {
  return `#${values.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

/** Relative luminance as WCAG defines it. */
export function luminance(color: string): number {
  const n = parseInt(color.slice(1), 16);
  const [r, g, b] = [n >> 16, (n >> 8) & 255, n & 255].map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
