import type { Picture } from "./report";

/** What the target draws: in its own size where there is room, scrolled sideways where it would become too small to read. */
export function Pictures({ pictures }: { pictures: Picture[] }) {
  if (pictures.length === 0) return null;
  return (
    <section aria-labelledby="pictures-title">
      <h2 id="pictures-title">Pictures</h2>
      {pictures.map((picture) => (
        <Shown key={picture.name} picture={picture} />
      ))}
    </section>
  );
}

/** A drawing that is wider is not made smaller than this. */
const LEAST = 720;

function Shown({ picture }: { picture: Picture }) {
  const wide = Number(/<svg[^>]* width="([\d.]+)"/.exec(picture.svg)?.[1] ?? LEAST);
  return (
    <figure data-testid="picture">
      <figcaption>{picture.title}</figcaption>
      <div class="wide" tabIndex={0} role="group" aria-label={picture.title}>
        <img alt={picture.title} style={{ width: `${wide}px`, minWidth: `${Math.min(wide, LEAST)}px` }} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture.svg)}`} />
      </div>
      <details>
        <summary>As text</summary>
        <pre class="wide" tabIndex={0}>
          {picture.text}
        </pre>
      </details>
    </figure>
  );
}
