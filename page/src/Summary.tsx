import { bytes, count, joint, percent, rate, time } from "./format";
import { headline, peakOf } from "./memory";
import type { Fact, PackedReport, Run } from "./report";

/** What an engineer wants to know first. */
export function Summary({ run }: { run: Run }) {
  const won = run.ranking.filter((row) => row.gain > 1.0005);
  const busiest = run.queues.reduce((best, queue) => (busyShare(run, queue) > busyShare(run, best) ? queue : best), run.queues[0]);
  const memory = run.memories[headline(run.memories)];
  const slowest = run.critical_by_engine.reduce((best, row) => (row.ns > best.ns ? row : best), run.critical_by_engine[0]);
  return (
    <section data-testid="summary" aria-labelledby="summary-title">
      <h2 id="summary-title" class="visually-hidden">
        Summary
      </h2>
      <dl class="figures">
        {run.tasks.count > 0 && <Figure name="End to end (estimate)" value={time(run.latency_ps)} note={count(run.tasks.count, "task")} />}
        {run.estimate_ps !== null && (
          <Figure name="Compiler's estimate" value={time(run.estimate_ps)} note={`Chipless ${run.latency_ps < run.estimate_ps ? "−" : "+"}${percent(Math.abs(run.latency_ps / run.estimate_ps - 1))}`} />
        )}
        {slowest && slowest.ns > 0 && <Figure name="Most of the critical path" value={slowest.engine} note={percent(slowest.share)} />}
        {won.length > 0 && <Figure name="Bound most by" value={won[0].figure} note={`${won[0].change}: ${time(won[0].latency_ns * 1000)}`} />}
        {busiest && busiest.tasks > 0 && <Figure name="Busiest" value={busiest.name} note={percent(busyShare(run, busiest))} />}
        {memory && (
          <Figure name={`Peak of ${memory.name} (${memory.kind})`} value={bytes(peakOf(memory).bytes)} note={memory.size ? `${percent(peakOf(memory).bytes / memory.size)} of ${bytes(memory.size)}` : ""} />
        )}
        <Figure name="Findings" value={run.findings.length === 0 ? "none" : run.findings.length.toLocaleString("en")} note={run.findings.some((finding) => finding.severity === "error") ? "with errors" : ""} />
      </dl>
      {run.timed_by !== null && run.tasks.count > 0 && <p class="weak">Timed by {run.timed_by}; the host is not included.</p>}
      {run.findings.length > 0 && <Findings findings={run.findings} />}
    </section>
  );
}

function busyShare(run: Run, queue: Run["queues"][number]): number {
  return run.latency_ps ? (queue.busy_ns * 1000) / (run.latency_ps * Math.max(1, queue.servers)) : 0;
}

/** Why it takes so long: parameters of the machine, operations, queues and links. */
export function Why({ run }: { run: Run }) {
  const won = run.ranking.filter((row) => row.gain > 1.0005);
  const busy = run.queues
    .filter((queue) => queue.tasks > 0)
    .map((queue) => ({ name: queue.name, share: busyShare(run, queue), note: `${time(queue.busy_ns * 1000)}, ${count(queue.tasks, "task")}${queue.servers > 1 ? `, ${queue.servers} servers` : ""}` }));
  const carried = run.resources.map((resource) => ({ name: resource.name, share: resource.utilization, note: bytes(resource.bytes) }));
  const critical = run.critical_by_queue.map((row) => ({ name: row.queue, share: run.latency_ps ? (row.ns * 1000) / run.latency_ps : 0, note: time(row.ns * 1000) }));
  const engines = run.critical_by_engine.filter((row) => row.ns > 0).map((row) => ({ name: row.engine, share: row.share, note: time(row.ns * 1000) }));
  return (
    <section aria-labelledby="why-title">
      <h2 id="why-title">Why it takes so long</h2>
      <div class="columns">
        {won.length > 0 && (
          <div>
            <h3>If this were twice as good</h3>
            <div class="wide">
              <table>
                <thead>
                  <tr>
                    <th>Machine parameter</th>
                    <th>Change</th>
                    <th class="number">The run takes</th>
                    <th class="number">Gain</th>
                  </tr>
                </thead>
                <tbody>
                  {won.slice(0, 8).map((row) => (
                    <tr key={row.figure}>
                      <td>
                        <code>{row.figure}</code>
                      </td>
                      <td>{row.change}</td>
                      <td class="number">{time(row.latency_ns * 1000)}</td>
                      <td class="number">{row.gain.toFixed(3)}×</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <p class="weak">Each by itself, by running the program again.</p>
          </div>
        )}
        {run.roofline.length > 0 && (
          <div>
            <h3>What bounds the operations</h3>
            <Roofline run={run} />
          </div>
        )}
        <Bars title="Critical path by engine" rows={engines} />
        <Bars title="Critical path by queue" rows={critical} />
        <Bars title="Busy queues" rows={busy} />
        <Bars title="Carried over links" rows={carried} />
      </div>
      <Known run={run} />
      {run.notes.length > 0 && (
        <details>
          <summary>Notes</summary>
          <ul>
            {run.notes.map((note, i) => (
              <li key={i}>{note}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

interface BarRow {
  name: string;
  share: number;
  note: string;
}

const BARS = 12;

/** Shares as bars. Rows that say the same are one, and only the largest are shown where there are many. */
function Bars({ title, rows }: { title: string; rows: BarRow[] }) {
  const alike: (BarRow & { names: string[] })[] = [];
  for (const row of rows) {
    const same = alike.find((other) => other.share === row.share && other.note === row.note);
    if (same) same.names.push(row.name);
    else alike.push({ ...row, names: [row.name] });
  }
  if (rows.length === 0) return null;
  if (alike.length > BARS) alike.sort((a, b) => b.share - a.share);
  return (
    <div>
      <h3>{title}</h3>
      <ul class="bars">
        {alike.slice(0, BARS).map(({ names, share, note }) => (
          <li key={names[0]}>
            <span class="name" title={names.join(", ")}>
              {joint(names)}
            </span>
            <span class="track">
              <i style={{ width: `${Math.min(100, 100 * share)}%` }} />
            </span>
            <span class="number">{percent(share)}</span>
            <span class="weak">{names.length > 1 ? `${note} each` : note}</span>
          </li>
        ))}
      </ul>
      {alike.length > BARS && <p class="weak">and {alike.length - BARS} with less; the tables below have all</p>}
    </div>
  );
}

const FINDINGS = 12;

/** What `check` found, the first of it at once. */
export function Findings({ findings }: { findings: Run["findings"] }) {
  const line = (finding: Run["findings"][number], i: number) => (
    <li key={i}>
      <b class={finding.severity}>{finding.severity}</b> <code>{finding.code}</code> {finding.place && <span class="weak">{finding.place}: </span>}
      {finding.message}
    </li>
  );
  return (
    <>
      <ul class="findings">{findings.slice(0, FINDINGS).map(line)}</ul>
      {findings.length > FINDINGS && (
        <details>
          <summary>{count(findings.length - FINDINGS, "more finding")}</summary>
          <ul class="findings">{findings.slice(FINDINGS, 1000).map(line)}</ul>
        </details>
      )}
    </>
  );
}

/** Operations and what bounds them. */
function Roofline({ run }: { run: Run }) {
  return (
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th>Operation</th>
            <th class="number">Tasks</th>
            <th class="number" title="Arithmetic operations a second while its tasks ran">Rate</th>
            <th class="number" title="Arithmetic operations for each byte that is read or written">Op/B</th>
            <th title="What takes the most of its tasks' time: arithmetic, bytes over shared links, or latency, which a task costs however little it does">Bound by</th>
          </tr>
        </thead>
        <tbody>
          {run.roofline.slice(0, 10).map((roof) => (
            <tr key={roof.operation}>
              <td>{roof.operation}</td>
              <td class="number">{roof.tasks.toLocaleString("en")}</td>
              <td class="number">{roof.ops > 0 ? rate(roof.ops_per_second) : "–"}</td>
              <td class="number">{roof.ops > 0 && roof.bytes > 0 ? roof.ops_per_byte.toPrecision(3) : "–"}</td>
              <td>{roof.bound}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value} <span class="weak">{note}</span>
      </dd>
    </div>
  );
}

/** What the target knows besides. */
export function Known({ run }: { run: Run }) {
  if (run.facts.length === 0) return null;
  return (
    <details open={run.tasks.count === 0}>
      <summary>Facts</summary>
      <Facts facts={run.facts} />
    </details>
  );
}

function Facts({ facts }: { facts: Fact[] }) {
  return (
    <ul>
      {facts.map((fact, i) => (
        <li key={i}>
          {fact.name}
          {fact.value && `: ${fact.value}`}
          {fact.children.length > 0 && <Facts facts={fact.children} />}
        </li>
      ))}
    </ul>
  );
}

/** The other run beside this one, and what makes the difference. */
export function Against({ run, other, difference }: { run: Run; other: Run; difference: PackedReport["difference"] }) {
  const change = other.latency_ps - run.latency_ps;
  const tasks = difference?.tasks;
  const layers = (difference?.time?.layers ?? []).filter((row) => Math.abs(row.contribution_ns) >= 5e-4);
  return (
    <div>
      <p>
        {run.file} takes {time(run.latency_ps)}, {other.file} {time(other.latency_ps)}: {time(Math.abs(change))} {change < 0 ? "less" : "more"}
        {run.latency_ps > 0 && ` (${percent(change / run.latency_ps)})`}.
      </p>
      {tasks && (
        <p>
          {difference?.equal ? "The two programs mean the same: " : "What changed: "}
          {count(tasks.matched, "task")} matched, {tasks.moved} moved, {tasks.changed.length} changed, {tasks.added.length} added, {tasks.removed.length} removed.
        </p>
      )}
      <div class="columns">
        {layers.length > 0 && (
          <div class="wide whole">
            <h3>Where the difference of time comes from</h3>
            <table>
              <thead>
                <tr>
                  <th>Layer</th>
                  <th class="number">This run</th>
                  <th class="number">The other</th>
                  <th class="number">Contribution</th>
                  <th>Why</th>
                </tr>
              </thead>
              <tbody>
                {layers.slice(0, SHOWN).map((row) => (
                  <tr key={row.layer}>
                    <td>{row.layer}</td>
                    <td class="number">{time(row.a_ns * 1000)}</td>
                    <td class="number">{time(row.b_ns * 1000)}</td>
                    <td class="number">{signed(row.contribution_ns * 1000)}</td>
                    <td>{row.why}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {difference && <Elsewhere difference={difference} />}
        {tasks && tasks.changed.length > 0 && (
          <div class="wide">
            <h3>Changed tasks</h3>
            <table>
              <thead>
                <tr>
                  <th>This program</th>
                  <th>The other</th>
                  <th>Operation</th>
                  <th>What</th>
                </tr>
              </thead>
              <tbody>
                {tasks.changed.slice(0, SHOWN).map((row) => (
                  <tr key={row.a}>
                    <td>{row.a}</td>
                    <td>{row.b}</td>
                    <td>{row.operation}</td>
                    <td>{row.what.join(", ")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {tasks.changed.length > SHOWN && <p class="weak">and {tasks.changed.length - SHOWN} more: chipless diff shows them</p>}
          </div>
        )}
      </div>
    </div>
  );
}

/** What changed besides tasks: the interface, constants, peaks of memories. */
function Elsewhere({ difference }: { difference: NonNullable<PackedReport["difference"]> }) {
  const { interface: ports, constants } = difference;
  const peak = (value: number | null) => (value === null ? "–" : bytes(value));
  const peaks = difference.memory.filter((row) => peak(row.peak_a) !== peak(row.peak_b));
  const rest = (all: unknown[]) => all.length > SHOWN && <li class="weak">and {all.length - SHOWN} more: chipless diff shows them</li>;
  return (
    <>
      {ports.length > 0 && (
        <div>
          <h3>Interface</h3>
          <ul>
            {ports.slice(0, SHOWN).map((line) => (
              <li key={line}>{line}</li>
            ))}
            {rest(ports)}
          </ul>
        </div>
      )}
      {constants.length > 0 && (
        <div>
          <h3>Changed constants</h3>
          <ul>
            {constants.slice(0, SHOWN).map((row) => (
              <li key={row.a}>
                {row.a === row.b ? row.a : `${row.a}, there ${row.b}`}: {bytes(row.bytes_changed)}
              </li>
            ))}
            {rest(constants)}
          </ul>
        </div>
      )}
      {peaks.length > 0 && (
        <div>
          <h3>Peaks of memories</h3>
          <ul>
            {peaks.slice(0, SHOWN).map((row) => (
              <li key={row.memory}>
                {row.memory}: {peak(row.peak_a)} here, {peak(row.peak_b)} there
              </li>
            ))}
            {rest(peaks)}
          </ul>
        </div>
      )}
    </>
  );
}

/** Lines of each kind of difference. */
const SHOWN = 20;

function signed(ps: number): string {
  return `${ps < 0 ? "−" : "+"}${time(Math.abs(ps))}`;
}
