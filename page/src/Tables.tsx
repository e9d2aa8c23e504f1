import { useMemo } from "preact/hooks";
import { type Column, Table } from "./Table";
import { bytes, time } from "./format";
import { REASONS, type Run, layerName, taskName, waited } from "./report";

/** Everything in rows: layers, tasks, waits, transfers, links. */
export function Tables({ run, show }: { run: Run; show: (task: number) => void }) {
  const { tasks } = run;
  const waits = useMemo(() => {
    const found: number[] = [];
    for (let i = 0; i < tasks.count; i++) if (tasks.reason[i] > 0) found.push(i);
    return found;
  }, [run]);
  const transfers = useMemo(() => {
    const found: number[] = [];
    for (let i = 0; i < tasks.count; i++) if (tasks.moved[i] > 0) found.push(i);
    return found;
  }, [run]);
  const columns = useMemo(() => {
    const pace = (task: number) => (tasks.end[task] > tasks.start[task] ? (1e12 * tasks.moved[task]) / (tasks.end[task] - tasks.start[task]) : 0);
    const ns = (ps: (row: number) => number, name: string): Column => ({ name, number: true, value: (row) => ps(row) / 1000, show: (row) => time(ps(row)) });
    const task: Column[] = [
      { name: "Task", value: (row) => taskName(run, row) },
      { name: "Operation", value: (row) => run.operations[tasks.operation[row]] },
      ...(run.layers.length > 0 ? [{ name: "Layer", value: (row: number) => layerName(run, row) ?? "" }] : []),
      ns((row) => tasks.start[row], "Start"),
      ns((row) => tasks.end[row] - tasks.start[row], "Duration"),
      ns((row) => waited(run, row), "Waited"),
      ns((row) => tasks.slack[row], "Slack"),
      { name: "Critical", value: (row) => (tasks.critical[row] ? "yes" : "") },
      { name: "Read", number: true, value: (row) => tasks.read[row], show: (row) => bytes(tasks.read[row]) },
      { name: "Written", number: true, value: (row) => tasks.written[row], show: (row) => bytes(tasks.written[row]) },
    ];
    const layer: Column[] = [
      { name: "Layer", value: (row) => run.layer_rows[row].layer },
      { name: "Tasks", number: true, value: (row) => run.layer_rows[row].tasks },
      ns((row) => run.layer_rows[row].busy_ns * 1000, "Busy"),
      ns((row) => run.layer_rows[row].critical_ns * 1000, "On the critical path"),
    ];
    const wait: Column[] = [
      { name: "Task", value: (row) => taskName(run, waits[row]) },
      { name: "Reason", value: (row) => REASONS[tasks.reason[waits[row]]] },
      { name: "On", value: (row) => (tasks.on[waits[row]] ? run.syncs[tasks.on[waits[row]] - 1] : "") },
      { name: "Let go by", value: (row) => (tasks.by[waits[row]] ? taskName(run, tasks.by[waits[row]] - 1) : "") },
      ns((row) => waited(run, waits[row]), "Waited"),
    ];
    const transfer: Column[] = [
      { name: "Task", value: (row) => taskName(run, transfers[row]) },
      { name: "Operation", value: (row) => run.operations[tasks.operation[transfers[row]]] },
      ns((row) => tasks.start[transfers[row]], "Start"),
      ns((row) => tasks.end[transfers[row]] - tasks.start[transfers[row]], "Duration"),
      { name: "Bytes", number: true, value: (row) => tasks.moved[transfers[row]], show: (row) => bytes(tasks.moved[transfers[row]]) },
      { name: "Bytes a second", number: true, value: (row) => pace(transfers[row]), show: (row) => `${bytes(Math.round(pace(transfers[row])))}/s` },
    ];
    const link: Column[] = [
      { name: "Link", value: (row) => run.resources[row].name },
      { name: "Bytes", number: true, value: (row) => run.resources[row].bytes, show: (row) => bytes(run.resources[row].bytes) },
      { name: "Utilization", number: true, value: (row) => run.resources[row].utilization, show: (row) => `${(100 * run.resources[row].utilization).toFixed(1)} %` },
    ];
    return { task, layer, wait, transfer, link };
  }, [run, waits, transfers]);
  return (
    <section aria-labelledby="tables-title">
      <h2 id="tables-title">Tables</h2>
      {run.layer_rows.length > 0 && <Table title="Layers" testId="table-layers" rows={run.layer_rows.length} columns={columns.layer} />}
      <Table title="Tasks" testId="table-tasks" rows={tasks.count} columns={columns.task} open={show} />
      {waits.length > 0 && <Table title="Waits" testId="table-waits" rows={waits.length} columns={columns.wait} open={(row) => show(waits[row])} />}
      {transfers.length > 0 && <Table title="Transfers" testId="table-transfers" rows={transfers.length} columns={columns.transfer} open={(row) => show(transfers[row])} />}
      {run.resources.length > 0 && <Table title="Links" testId="table-links" rows={run.resources.length} columns={columns.link} />}
    </section>
  );
}
