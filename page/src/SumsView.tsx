import type { ComponentChildren } from "preact";
import { bytes, percent, time } from "./format";
import { REASONS } from "./report";
import type { Sum, Sums } from "./sums";

interface Props {
  title: string;
  /** How long the part of the run is, in picoseconds. */
  span: number;
  sums: Sums;
  children?: ComponentChildren;
}

/** Sums over a part of the timeline: by operation, by lane, and what was waited for. */
export function SumsView({ title, span, sums, children }: Props) {
  const { total, waits } = sums;
  return (
    <div data-testid="sums">
      <h3>{title}</h3>
      {children}
      <p>
        {total.tasks.toLocaleString("en")} tasks, {time(total.busy)} busy, {time(total.critical)} of it on the critical path, {bytes(Math.round(total.moved))} moved.
      </p>
      {waits.map(
        (ps, reason) =>
          reason > 0 &&
          ps > 0 && (
            <p key={reason} class="weak">
              Lanes waited {time(ps)} ({REASONS[reason]}).
            </p>
          ),
      )}
      <Rows title="Operation" rows={sums.operations} span={span} />
      <Rows title="Queue" rows={sums.lanes} span={span} />
    </div>
  );
}

const SHOWN = 15;

function Rows({ title, rows, span }: { title: string; rows: Sum[]; span: number }) {
  if (rows.length === 0) return null;
  return (
    <table class="sums">
      <thead>
        <tr>
          <th>{title}</th>
          <th class="number">Tasks</th>
          <th class="number">Busy</th>
          <th class="number" title="Busy time for each unit of time of the selection">
            Share
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, SHOWN).map((row) => (
          <tr key={row.name}>
            <td>{row.name}</td>
            <td class="number">{row.tasks.toLocaleString("en")}</td>
            <td class="number">{time(row.busy)}</td>
            <td class="number">{percent(row.busy / Math.max(1, span))}</td>
          </tr>
        ))}
        {rows.length > SHOWN && (
          <tr>
            <td colSpan={4} class="weak">
              and {rows.length - SHOWN} with less
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
}
