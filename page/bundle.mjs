// Puts the built page where the Rust crate embeds it, or checks that what is there is what the sources give.
import { readFileSync, writeFileSync } from "node:fs";

const built = readFileSync(new URL("dist/index.html", import.meta.url), "utf8");
const home = new URL("../crates/report/src/page/bundle.html", import.meta.url);
if (process.argv[2] === "write") {
  writeFileSync(home, built);
} else if (readFileSync(home, "utf8") !== built) {
  console.error("crates/report/src/page/bundle.html is not what page/ gives: run `npm run build` in page/");
  process.exit(1);
}
