import { useMemo, useState } from "preact/hooks";
import { csv } from "./format";

export interface Column {
  name: string;
  number?: boolean;
  value: (row: number) => string | number;
  show?: (row: number) => string;
}

interface Props {
  title: string;
  testId: string;
  rows: number;
  columns: Column[];
  open?: (row: number) => void;
}

const PAGE = 50;

/** A table that can be sorted, filtered and copied. Only the rows of one page are in the document. */
export function Table({ title, testId, rows, columns, open }: Props) {
  const [sort, setSort] = useState<{ column: number; down: boolean } | null>(null);
  const [filter, setFilter] = useState("");
  const [page, setPage] = useState(0);
  const [copied, setCopied] = useState("");
  const order = useMemo(() => {
    let found = Array.from({ length: rows }, (_, i) => i);
    const wanted = filter.toLowerCase();
    if (wanted) found = found.filter((row) => columns.some((column) => String(column.value(row)).toLowerCase().includes(wanted)));
    if (sort) {
      const { value } = columns[sort.column];
      const direction = sort.down ? -1 : 1;
      found.sort((a, b) => direction * compare(value(a), value(b)) || a - b);
    }
    return found;
  }, [rows, columns, sort, filter]);
  const pages = Math.max(1, Math.ceil(order.length / PAGE));
  const at = Math.min(page, pages - 1);

  const copy = async () => {
    const lines = [columns.map((column) => column.name), ...order.map((row) => columns.map((column) => column.value(row)))];
    const text = csv(lines);
    try {
      await navigator.clipboard.writeText(text);
      setCopied(`${order.length} rows copied`);
    } catch {
      setCopied("The browser does not let this page copy.");
    }
  };
  return (
    <section data-testid={testId} aria-label={title}>
      <h3>{title}</h3>
      <div class="row">
        <input
          type="search"
          placeholder="Filter"
          aria-label={`Filter ${title}`}
          value={filter}
          onInput={(event) => {
            setFilter(event.currentTarget.value);
            setPage(0);
          }}
        />
        <button onClick={copy}>Copy as CSV</button>
        <span class="weak" role="status">
          {copied || `${order.length.toLocaleString("en")} rows`}
        </span>
      </div>
      <div class="wide">
        <table class="rows">
          <thead>
            <tr>
              {columns.map((column, i) => (
                <th key={column.name} class={column.number ? "number" : ""} aria-sort={sort?.column === i ? (sort.down ? "descending" : "ascending") : "none"}>
                  <button class="link" onClick={() => setSort({ column: i, down: sort?.column === i ? !sort.down : Boolean(column.number) })}>
                    {column.name}
                    {sort?.column === i ? (sort.down ? " ↓" : " ↑") : ""}
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {order.slice(at * PAGE, (at + 1) * PAGE).map((row) => (
              <tr key={row}>
                {columns.map((column, i) => {
                  const text = column.show ? column.show(row) : String(column.value(row));
                  return (
                    <td key={column.name} data-name={column.name} class={column.number ? "number" : ""}>
                      {i === 0 && open ? (
                        <button class="link" onClick={() => open(row)}>
                          {text}
                        </button>
                      ) : (
                        text
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pages > 1 && (
        <div class="row">
          <button disabled={at === 0} onClick={() => setPage(at - 1)}>
            Previous
          </button>
          <span>
            Page {at + 1} of {pages}
          </span>
          <button disabled={at >= pages - 1} onClick={() => setPage(at + 1)}>
            Next
          </button>
        </div>
      )}
    </section>
  );
}

const natural = new Intl.Collator("en", { numeric: true });

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b : natural.compare(String(a), String(b));
}
