import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, time } from "./format";
import type { Instant, Memory } from "./report";

/** A place in a memory at an instant. */
export interface Place {
  address: number;
  ps: number;
}

interface Props {
  memory: Memory;
  whole: number;
  /** The place that was clicked. */
  place: Place | null;
}

/** The bytes that stand at an address at an instant: the server executes the program up to then. */
export function Bytes({ memory, whole, place }: Props) {
  const [address, setAddress] = useState("");
  const [ns, setNs] = useState("");
  const [state, setState] = useState<{ found?: Instant; said?: string }>({});
  const asked = useRef(0);

  const ask = async (place: Place) => {
    const number = ++asked.current;
    setState({ said: `The program is executed up to ${time(place.ps)} …` });
    const answer = await question(memory, place);
    // A later question has been asked meanwhile.
    if (number === asked.current) setState(answer);
  };
  useEffect(() => {
    asked.current++;
    setState({});
  }, [memory]);
  useEffect(() => {
    if (!place) return;
    setAddress(`0x${place.address.toString(16)}`);
    setNs((place.ps / 1000).toString());
    void ask(place);
  }, [place]);

  const submit = (event: Event) => {
    event.preventDefault();
    const at = Number(ns);
    const wanted = Number(address);
    if (address.trim() === "" || !Number.isSafeInteger(wanted) || wanted < 0) return setState({ said: `Expected an address such as 0x1f00 or 7936, found "${address}".` });
    if (ns.trim() === "" || !(at >= 0 && at * 1000 <= whole)) return setState({ said: `Expected nanoseconds from 0 to ${whole / 1000}, found "${ns}".` });
    void ask({ address: wanted, ps: Math.round(at * 1000) });
  };
  return (
    <div data-testid="bytes">
      <form class="row" onSubmit={submit} aria-label="Bytes at an instant">
        <label>
          Address <input value={address} size={12} aria-label="Address" onInput={(event) => setAddress(event.currentTarget.value)} />
        </label>
        <label>
          at <input value={ns} size={10} aria-label="Instant in nanoseconds" inputMode="decimal" onInput={(event) => setNs(event.currentTarget.value)} /> ns
        </label>
        <button>Show bytes</button>
        <span class="weak" role="status">
          {state.said ?? (state.found ? "" : "Click into the picture, or give an address and an instant.")}
        </span>
      </form>
      {state.found && <Dump found={state.found} />}
    </div>
  );
}

async function question(memory: Memory, place: Place): Promise<{ found?: Instant; said?: string }> {
  try {
    const answer = await fetch(`bytes?memory=${memory.id}&address=${place.address}&ps=${place.ps}`);
    return answer.ok ? { found: (await answer.json()) as Instant } : { said: await answer.text() };
  } catch {
    return { said: "The server does not answer: chipless view has ended." };
  }
}

const ROW = 16;

function Dump({ found }: { found: Instant }) {
  const values = found.bytes.match(/../g) ?? [];
  const marked = found.offset % ROW;
  const rows: string[][] = [];
  for (let at = 0; at < values.length; at += ROW) rows.push(values.slice(at, at + ROW));
  const printable = (value: string) => {
    const code = Number.parseInt(value, 16);
    return code >= 32 && code < 127 ? String.fromCharCode(code) : ".";
  };
  const origin = found.writer ? `written by ${found.writer} at ${time(found.written_ps ?? 0)}` : found.is_undefined ? "not written yet: undefined on the device, zero here" : "there from the start";
  const address = (at: number) => `0x${(found.address + at).toString(16)}`;
  return (
    <>
      <p>
        <b>{address(marked)}</b> of {found.memory} at {time(found.ps)}: byte {found.offset.toLocaleString("en")} of {found.buffer} ({found.role}, {bytes(found.size)}), {origin}.
      </p>
      <div class="wide" tabIndex={0} role="group" aria-label={`Bytes from ${address(0)}`}>
        <table class="dump">
          <tbody>
            {rows.map((row, line) => (
              <tr key={line}>
                <th scope="row">{address(line * ROW)}</th>
                <td>
                  {row.map((value, i) => (
                    <span key={i} class={line === 0 && i === marked ? "marked" : ""}>
                      {value}
                    </span>
                  ))}
                </td>
                <td class="weak">{row.map(printable).join("")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.notes.map((note) => (
        <p key={note} class="weak">
          {note}
        </p>
      ))}
    </>
  );
}
