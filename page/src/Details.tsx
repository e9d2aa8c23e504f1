import { Findings } from "./Summary";
import { bytes, time } from "./format";
import { REASONS, type Run, layerName, taskName, waited } from "./report";

interface Props {
  run: Run;
  task: number | null;
  followers: number[];
  select: (task: number) => void;
}

/** Everything about one task. */
export function Details({ run, task, followers, select }: Props) {
  if (task === null) {
    return (
      <aside class="details" data-testid="details" tabIndex={-1}>
        <p class="weak">Select a task: click its bar, search for its name, or use the arrow keys on the timeline.</p>
      </aside>
    );
  }
  const { tasks } = run;
  const listing = run.details?.[task];
  const wait = waited(run, task);
  const findings = run.findings.filter((finding) => names(finding.place, taskName(run, task)));
  const by = tasks.by[task];
  const on = tasks.on[task];
  const rows: [string, preact.ComponentChildren][] = [
    ["Operation", run.operations[tasks.operation[task]]],
    ["Layer", layerName(run, task) ?? "–"],
    ["Start, end", `${time(tasks.start[task])}, ${time(tasks.end[task])}`],
    ["Duration", time(tasks.end[task] - tasks.start[task])],
    ["Waited", wait > 0 ? `${time(wait)} (${REASONS[tasks.reason[task]]}${on ? ` ${run.syncs[on - 1]}` : ""})` : "not at all"],
    ["Slack", tasks.critical[task] ? "none: on the critical path" : time(tasks.slack[task])],
    ["Bytes", `${bytes(tasks.read[task])} read, ${bytes(tasks.written[task])} written`],
  ];
  if (by) rows.push(["Let go by", <Link run={run} task={by - 1} select={select} />]);
  if (followers.length > 0) {
    rows.push([
      "Lets go",
      followers.slice(0, 20).map((one) => (
        <>
          <Link key={one} run={run} task={one} select={select} />{" "}
        </>
      )),
    ]);
  }
  return (
    <aside class="details" data-testid="details" tabIndex={-1}>
      <h3>{taskName(run, task)}</h3>
      <table>
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {findings.length > 0 && <Findings findings={findings} />}
      {listing === undefined ? (
        <p class="weak">The program is too long for its disassembly to stand here: see `chipless list FILE '{taskName(run, task)}'`.</p>
      ) : (
        <pre>{listing}</pre>
      )}
    </aside>
  );
}

/** Whether a finding's place is this task, and not one whose name begins or ends alike. */
function names(place: string, task: string): boolean {
  const at = place.indexOf(task);
  return at >= 0 && !/[\w.]/.test(place[at - 1] ?? " ");
}

function Link({ run, task, select }: { run: Run; task: number; select: (task: number) => void }) {
  return (
    <button class="link" onClick={() => select(task)}>
      {taskName(run, task)}
    </button>
  );
}
