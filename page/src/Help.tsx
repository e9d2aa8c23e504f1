import { useEffect, useRef } from "preact/hooks";

const KEYS = [
  ["w, s", "zoom in, out, around the pointer"],
  ["a, d", "pan left, right"],
  ["f", "fit the selection into the view; again: the whole run"],
  ["m", "mark the time of the selected task or layer, or what is visible: sums over all lanes"],
  ["p", "pin the lane of the selected task to the top, or take it back"],
  ["c", "fold or open the group of the selected task's lane; Shift: all groups"],
  ["Home", "the whole run"],
  ["Arrow keys", "from task to task, from lane to lane"],
  ["Enter", "open the details of the selected task"],
  ["/", "search; Enter and Shift+Enter go to the next and previous match"],
  ["Escape", "close, or select nothing"],
  ["Ctrl+wheel, pinch", "zoom"],
  ["Drag, Shift+wheel", "pan"],
  ["Drag on the axis", "select a time on all lanes; Shift+drag on lanes: on these alone"],
  ["Click on a name", "fold a group; on its star: pin"],
];

export function Help({ close }: { close: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  return (
    <div class="help" role="dialog" aria-modal="true" aria-labelledby="help-title" data-testid="help">
      <h2 id="help-title">Keys and pointer</h2>
      <table>
        <tbody>
          {KEYS.map(([key, what]) => (
            <tr key={key}>
              <th scope="row">{key}</th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>Bars are tasks, coloured by operation; greys are transfers. Hatched: the lane waited. Underlined: on the critical path. Crowded lanes show how busy each pixel is.</p>
      <p>The address of the page has the view, the selection, the search, and pinned and folded lanes: copy it to show somebody what you see.</p>
      <button ref={button} onClick={close}>
        Close
      </button>
    </div>
  );
}
