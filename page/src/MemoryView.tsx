import { useEffect, useRef, useState } from "preact/hooks";
import { Bytes, type Place } from "./Bytes";
import type { Theme } from "./colors";
import { bytes, time } from "./format";
import { headline, peakOf } from "./memory";
import type { Block, Memory, Run } from "./report";

const HEIGHT = 200;
const LEFT = 8;
/** Pixels from a block within which the pointer means it. */
const REACH = 5;

/** Address × time of one memory: what lies where and when, the live bytes, and the capacity. */
export function MemoryView({ run, theme, noBytes }: { run: Run; theme: Theme; noBytes: string | null }) {
  const shown = run.memories;
  const [chosen, setChosen] = useState(() => headline(shown));
  const [place, setPlace] = useState<Place | null>(null);
  const memory = shown[Math.min(chosen, shown.length - 1)];
  return (
    <section data-testid="memory" aria-labelledby="memory-title">
      <h2 id="memory-title">Memory</h2>
      {!memory && <p class="weak">The program has no memory whose use is known.</p>}
      {memory && (
        <>
          <label class="row">
            Memory{" "}
            <select
              value={chosen}
              onChange={(event) => {
                setChosen(Number(event.currentTarget.value));
                setPlace(null);
              }}
            >
              {shown.map((one, i) => (
                <option key={one.name} value={i}>
                  {one.name}
                </option>
              ))}
            </select>
          </label>
          <Map memory={memory} whole={run.latency_ps} theme={theme} open={noBytes === null ? setPlace : undefined} />
          {noBytes === null ? <Bytes memory={memory} whole={run.latency_ps} place={place} /> : <p class="weak">{noBytes}</p>}
          <AtPeak memory={memory} />
        </>
      )}
    </section>
  );
}

interface MapProps {
  memory: Memory;
  whole: number;
  theme: Theme;
  /** What a click does. */
  open?: (place: Place) => void;
}

function Map({ memory, whole, theme, open }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState("");
  const peak = peakOf(memory);
  const top = Math.max(1, peak.bytes, ...memory.blocks.map((block) => block.address + block.size));
  const range = memory.size !== null && memory.size < 4 * top ? Math.max(memory.size, top) : top;
  // Where little lives in a wide space, live bytes have a scale of their own.
  const scale = peak.bytes * 8 < range ? 1.25 * Math.max(1, peak.bytes) : range;
  const span = Math.max(1, whole);

  useEffect(() => {
    const paint = () => {
      const target = canvas.current;
      const context = target?.getContext("2d");
      if (!target || !context) return;
      const ratio = window.devicePixelRatio || 1;
      const wide = target.clientWidth;
      target.width = wide * ratio;
      target.height = HEIGHT * ratio;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const x = (ps: number) => LEFT + (ps / span) * (wide - 2 * LEFT);
      const y = (value: number) => HEIGHT - 6 - (value / range) * (HEIGHT - 14);
      memory.blocks.forEach((block) => {
        context.fillStyle = theme.roles[block.role] ?? theme.weak;
        context.globalAlpha = 0.55;
        const high = Math.max(1, y(block.address) - y(block.address + block.size));
        context.fillRect(x(block.start_ps), y(block.address + block.size), Math.max(1, x(block.end_ps) - x(block.start_ps)), high);
      });
      context.globalAlpha = 1;
      context.strokeStyle = theme.accent;
      context.lineWidth = 1.5;
      context.beginPath();
      const level = (value: number) => y((value / scale) * range);
      context.moveTo(x(0), level(0));
      memory.live.ps.forEach((ps, i) => {
        context.lineTo(x(ps), level(i > 0 ? memory.live.bytes[i - 1] : 0));
        context.lineTo(x(ps), level(memory.live.bytes[i]));
      });
      context.lineTo(x(span), level(memory.live.bytes[memory.live.bytes.length - 1] ?? 0));
      context.stroke();
      if (memory.size !== null && memory.size <= range) {
        context.strokeStyle = theme.critical;
        context.setLineDash([6, 4]);
        context.beginPath();
        context.moveTo(0, y(memory.size));
        context.lineTo(wide, y(memory.size));
        context.stroke();
        context.setLineDash([]);
      }
    };
    paint();
    const observer = new ResizeObserver(paint);
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, [memory, theme, range, scale, span]);

  /** The place under the pointer; in the nearest block where one is a few pixels away. */
  const placeOf = (event: MouseEvent): Place => {
    const pixel = { ps: span / ((canvas.current?.clientWidth ?? 1) - 2 * LEFT), address: range / (HEIGHT - 14) };
    const within = (value: number, least: number, most: number) => Math.max(least, Math.min(most, Math.round(value)));
    const ps = within((event.offsetX - LEFT) * pixel.ps, 0, whole);
    const address = within((HEIGHT - 6 - event.offsetY) * pixel.address, 0, range - 1);
    const inside = (block: Block): Place => ({ ps: within(ps, block.start_ps, block.end_ps), address: within(address, block.address, block.address + block.size - 1) });
    const distance = (place: Place) => Math.hypot((place.ps - ps) / pixel.ps, (place.address - address) / pixel.address);
    const near = memory.blocks.map(inside).filter((place) => distance(place) <= REACH);
    return near.reduce((best, place) => (distance(place) < distance(best) ? place : best), near[0] ?? { ps, address });
  };
  const name = (event: MouseEvent) => {
    const { ps, address } = placeOf(event);
    const found = memory.blocks.find((b) => b.start_ps <= ps && ps <= b.end_ps && b.address <= address && address < b.address + b.size);
    setHover(found ? `${found.name} (${found.role}): ${bytes(found.size)} at 0x${found.address.toString(16)}, ${time(found.start_ps)} to ${time(found.end_ps)}` : "");
  };
  return (
    <figure>
      <canvas class="memory" ref={canvas} style={{ height: `${HEIGHT}px` }} role="img" aria-label={`Addresses of ${memory.name} over time; at most ${bytes(peak.bytes)} live`} onPointerMove={name} onClick={open && ((event) => open(placeOf(event)))} />
      <figcaption class="weak">
        {hover || `Peak ${bytes(peak.bytes)} at ${time(peak.ps)}${memory.size ? ` of ${bytes(memory.size)}${memory.size <= range ? " (dashed)" : ""}` : ""}. The line is live bytes${scale === range ? "" : ` (the top is ${bytes(Math.round(scale))})`}; blocks are buffers while they live.`}
        {memory.more_blocks > 0 && ` ${memory.more_blocks} small blocks are left out.`}
      </figcaption>
      <ul class="legend" aria-label="Colours of buffers, by role">
        {[...new Set(memory.blocks.map((block) => block.role))].map((role) => (
          <li key={role}>
            <i style={{ background: theme.roles[role] ?? theme.weak }} />
            {role}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function AtPeak({ memory }: { memory: Memory }) {
  const peak = peakOf(memory);
  const there = memory.blocks.filter((block) => block.start_ps <= peak.ps && peak.ps <= block.end_ps).sort((a, b) => b.size - a.size);
  if (there.length === 0) return null;
  return (
    <details>
      <summary>What stands there at the peak</summary>
      <table>
        <tbody>
          {there.slice(0, 30).map((block) => (
            <tr key={`${block.name} ${block.address} ${block.start_ps}`}>
              <td>{block.name}</td>
              <td class="number">0x{block.address.toString(16)}</td>
              <td class="number">{bytes(block.size)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
