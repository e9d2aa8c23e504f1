// Writes dist/THIRD-PARTY.txt: the licences of the packages that are bundled into the extension.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
const notices = [];
for (const [path, { dev, version, license }] of Object.entries(packages)) {
  if (path === "" || dev) {
    continue;
  }
  const texts = readdirSync(path).filter((name) => /^licen[cs]e/i.test(name));
  const said = texts.map((name) => readFileSync(join(path, name), "utf8").trim());
  notices.push([`${path.replace(/^.*node_modules\//, "")} ${version} (${license})`, ...said].join("\n\n"));
}
writeFileSync("dist/THIRD-PARTY.txt", notices.join("\n\n----\n\n") + "\n");
