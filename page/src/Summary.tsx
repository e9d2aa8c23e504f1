import { bytes, count, percent, time } from "./format";
import type { Fact, PackedReport, Run } from "./report";

/** What an engineer wants to know first. */
export function Summary({ run }: { run: Run }) {
  const tasks = count(run.tasks.count, "task");
  return (
    <section data-testid="summary" aria-labelledby="summary-title">
      <h2 id="summary-title">Summary</h2>
      <dl class="figures">
        <Figure name="End to end (estimate)" value={time(run.latency_ps)} note={tasks} />
        {run.estimate_ps !== null && (
          <Figure name="The compiler's estimate" value={time(run.estimate_ps)} note={`Chipless ${percent(run.latency_ps / run.estimate_ps - 1)} beside it`} />
        )}
        {run.memories
          .filter((memory) => memory.live.bytes.length > 0)
          .slice(0, 6)
          .map((memory) => {
            const peak = Math.max(...memory.live.bytes);
            const note = memory.size ? `${percent(peak / memory.size)} of ${bytes(memory.size)}` : "peak";
            return <Figure key={memory.name} name={`Peak of ${memory.name}`} value={bytes(peak)} note={note} />;
          })}
      </dl>
      {run.ranking.length > 0 && (
        <>
          <h3>What bounds it</h3>
          <p class="weak">Each figure of the machine made twice as good, and the program run again.</p>
          <table>
            <thead>
              <tr>
                <th>Figure</th>
                <th>Change</th>
                <th class="number">The run would take</th>
                <th class="number">Gain</th>
              </tr>
            </thead>
            <tbody>
              {run.ranking.slice(0, 8).map((row) => (
                <tr key={row.figure}>
                  <td>{row.figure}</td>
                  <td>{row.change}</td>
                  <td class="number">{time(row.latency_ns * 1000)}</td>
                  <td class="number">{row.gain.toFixed(3)} ×</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      <h3>Busy</h3>
      <ul class="bars">
        {run.queues
          .filter((queue) => queue.tasks > 0)
          .map((queue) => (
            <Bar
              key={queue.name}
              name={queue.name}
              share={run.latency_ps ? (queue.busy_ns * 1000) / (run.latency_ps * queue.servers) : 0}
              note={`${time(queue.busy_ns * 1000)}, ${count(queue.tasks, "task")}${queue.servers > 1 ? `, ${queue.servers} servers` : ""}`}
            />
          ))}
        {run.resources.map((resource) => (
          <Bar key={resource.name} name={resource.name} share={resource.utilization} note={bytes(resource.bytes)} />
        ))}
      </ul>
      {run.critical_by_queue.length > 0 && (
        <>
          <h3>Critical path by queue</h3>
          <ul class="bars">
            {run.critical_by_queue.map((row) => (
              <Bar key={row.queue} name={row.queue} share={run.latency_ps ? (row.ns * 1000) / run.latency_ps : 0} note={time(row.ns * 1000)} />
            ))}
          </ul>
        </>
      )}
      {run.findings.length > 0 && (
        <>
          <h3>Findings</h3>
          <ul class="findings">
            {run.findings.map((finding, i) => (
              <li key={i}>
                <b class={finding.severity}>{finding.severity}</b> [{finding.code}] {finding.place && `${finding.place}: `}
                {finding.message}
              </li>
            ))}
          </ul>
        </>
      )}
      {run.facts.length > 0 && (
        <details>
          <summary>Facts</summary>
          <Facts facts={run.facts} />
        </details>
      )}
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

function Bar({ name, share, note }: { name: string; share: number; note: string }) {
  return (
    <li>
      <span class="name">{name}</span>
      <span class="track">
        <i style={{ width: `${Math.min(100, 100 * share)}%` }} />
      </span>
      <span class="number">{percent(share)}</span>
      <span class="weak">{note}</span>
    </li>
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
  return (
    <div>
      <p>
        {run.file} takes {time(run.latency_ps)}, {other.file} {time(other.latency_ps)}: {time(Math.abs(change))} {change < 0 ? "less" : "more"}
        {run.latency_ps > 0 && ` (${percent(change / run.latency_ps)})`}.
      </p>
      {difference.length > 0 && (
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
            {difference.slice(0, 40).map((row) => (
              <tr key={row.layer}>
                <td>{row.layer}</td>
                <td class="number">{time(row.a_ns * 1000)}</td>
                <td class="number">{time(row.b_ns * 1000)}</td>
                <td class="number">{time(row.contribution_ns * 1000)}</td>
                <td>{row.why}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
