// Where things are, and the command that is tested.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the extension, and that of the repository. */
export const here = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const root = resolve(here, "../..");

export const json = (name) => JSON.parse(readFileSync(join(here, name), "utf8"));
export const fixture = (name) => join(root, "fixtures", name);

/** The command: that of the environment, or the newest that the tests of the repository have built. */
export function chipless() {
  const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  const found = [process.env.CHIPLESS, join(target, "debug/chipless"), join(target, "release/chipless")].find((path) => path && existsSync(path));
  if (found === undefined) {
    throw new Error("no chipless: build it with `cargo build`, or say where it is with CHIPLESS");
  }
  return found;
}
