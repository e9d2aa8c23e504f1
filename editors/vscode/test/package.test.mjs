// What package.json promises is there, and is what the command takes.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { chipless, here, json } from "./support.mjs";

const manifest = json("package.json");
const { contributes } = manifest;

test("every file that is named is there", () => {
  const named = [manifest.main, ...contributes.grammars.map((g) => g.path), ...contributes.languages.map((l) => l.configuration), ...manifest.files];
  for (const name of named) {
    assert.ok(existsSync(join(here, name)), name);
  }
});

test("grammars belong to languages, and have the scope that is named", () => {
  for (const { language, scopeName, path } of contributes.grammars) {
    assert.ok(contributes.languages.some((known) => known.id === language), language);
    assert.equal(json(path).scopeName, scopeName);
  }
});

test("the extension serves the languages that it declares, and no others", () => {
  const source = readFileSync(join(here, "src/extension.ts"), "utf8");
  const served = [...source.match(/LANGUAGES = \[([^\]]*)\]/)[1].matchAll(/"([^"]+)"/g)].map(([, id]) => id);
  assert.deepEqual(served.toSorted(), contributes.languages.map((language) => language.id).toSorted());
});

test("commands and debuggers of package.json are registered", () => {
  const built = readFileSync(join(here, "dist/extension.js"), "utf8");
  for (const { command } of contributes.commands) {
    assert.ok(built.includes(`"${command}"`), command);
  }
  assert.deepEqual(contributes.debuggers.map((d) => d.type), ["chipless"]);
});

test("the command has what the extension starts", () => {
  const help = (...words) => execFileSync(chipless(), [...words, "--help"], { encoding: "utf8" });
  assert.match(help("lsp"), /Language Server Protocol/);
  assert.match(help("debug"), /--dap/);
});

test("no address of a registry is in the lock file", () => {
  assert.ok(!readFileSync(join(here, "package-lock.json"), "utf8").includes('"resolved"'));
});
