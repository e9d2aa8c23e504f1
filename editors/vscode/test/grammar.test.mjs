// The grammars, as VS Code reads them.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";
import { fixture, here, json } from "./support.mjs";

const wasm = readFileSync(createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));

const grammars = json("package.json").contributes.grammars;
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async (scope) => {
    const known = grammars.find((grammar) => grammar.scopeName === scope);
    // YAML is VS Code's own.
    return known ? textmate.parseRawGrammar(readFileSync(join(here, known.path), "utf8"), known.path) : null;
  },
});

/** Words of a text with their innermost scope, without its last part; blanks and what has none are left out. */
async function coloured(scope, text) {
  const grammar = await registry.loadGrammar(scope);
  const found = [];
  let stack = textmate.INITIAL;
  for (const line of text.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    for (const token of tokens) {
      const word = line.slice(token.startIndex, token.endIndex).trim();
      const last = token.scopes.at(-1);
      if (word && last !== scope && !last.startsWith("meta.")) {
        found.push([word, last.replace(/\.[a-z]+$/, "")]);
      }
    }
  }
  return found;
}

test("statements of a DFG", async () => {
  const text = `# remark
Array: m 1024 spm
Input64: cell[2] stated source=m
#pragma $Reg0 sum
#pragma group unroll 4
---- next
sum, rest = Add_I64(cell0, $Reg0, ctrl=$cellState & 0x8{0: d, 8: b1|r})
Output64: sum  # end`;
  assert.deepEqual(await coloured("source.chipless.dfg", text), [
    ["# remark", "comment.line.number-sign"],
    ["Array", "storage.type.array"], ["m", "variable.other.array"], ["1024", "constant.numeric"], ["spm", "support.type.memory"],
    ["Input64", "storage.type.port"], ["cell", "variable.parameter.port"], ["2", "constant.numeric"], ["stated", "support.type.property-name"],
    ["source", "support.type.property-name"], ["=", "keyword.operator.assignment"], ["m", "variable.other"],
    ["#pragma", "keyword.control.directive.pragma"], ["$Reg0", "variable.language.register"], ["sum", "variable.other"],
    ["#pragma", "keyword.control.directive.pragma"], ["group", "keyword.other"], ["unroll", "support.type.property-name"], ["4", "constant.numeric"],
    ["---- next", "keyword.control.separator"],
    ["sum, rest", "variable.other.definition"], ["=", "keyword.operator.assignment"], ["Add_I64", "entity.name.function.operation"],
    ["cell0", "variable.other"], ["$Reg0", "variable.language.register"], ["ctrl", "keyword.other.qualifier"], ["=", "keyword.operator.assignment"],
    ["$cellState", "variable.other"], ["&", "keyword.operator"], ["0x8", "constant.numeric"],
    ["0", "constant.numeric"], ["d", "constant.language.action"], ["8", "constant.numeric"], ["b1", "constant.language.action"],
    ["|", "keyword.operator"], ["r", "constant.language.action"],
    ["Output64", "storage.type.port"], ["sum", "variable.parameter.port"], ["# end", "comment.line.number-sign"],
  ]);
});

test("statements of assembler", async () => {
  const text = `; remark
neff p trn2
input x float16 [4, 4]
engine act
COPY dst=fp32@0x4400[1,0] channels=32 $S[6]>=1 $S[4]++@complete
|00ff`;
  const found = await coloured("source.chipless.asm", text);
  for (const wanted of [
    ["; remark", "comment.line.semicolon"], ["neff", "keyword.other"], ["x", "variable.parameter"], ["float16", "storage.type"],
    ["act", "entity.name.section.engine"], ["COPY", "entity.name.function.instruction"], ["channels", "support.type.property-name"],
    ["$S", "variable.language.semaphore"], ["6", "constant.numeric.semaphore"], ["@complete", "keyword.other.moment"], ["|00ff", "string.unquoted.content"],
  ]) {
    assert.ok(found.some(([word, scope]) => word === wanted[0] && scope === wanted[1]), `${wanted}: ${JSON.stringify(found)}`);
  }
});

test("every operation and every port of the fixtures is seen", async () => {
  for (const folder of ["dsa", "dsa/kernels"]) {
    for (const name of readdirSync(fixture(folder)).filter((name) => name.endsWith(".dfg"))) {
      const text = readFileSync(join(fixture(folder), name), "utf8").replaceAll("\r", "");
      const code = text.replace(/#(?!pragma).*$/gm, "");
      const found = await coloured("source.chipless.dfg", text);
      const operations = [...code.matchAll(/\b([A-Za-z_]\w*)\s*(?=[(<])/g)].filter(([, word]) => !word.startsWith("Task"));
      assert.equal(found.filter(([, scope]) => scope === "entity.name.function.operation").length, operations.length, name);
      const ports = [...code.matchAll(/^\s*(?:Input|Output|Indirect)(?:Vec|\d+)?\b/gm)];
      assert.equal(found.filter(([, scope]) => scope === "storage.type.port").length, ports.length, name);
    }
  }
});

test("machine files", async () => {
  const found = await coloured("source.chipless.machine", '[dma] # bytes: sheet\nread = 32.0\nname = "x"');
  assert.deepEqual(found, [
    ["dma", "entity.name.section"], ["# bytes: sheet", "comment.line.number-sign"], ["read", "support.type.property-name"],
    ["=", "keyword.operator.assignment"], ["32.0", "constant.numeric"], ["name", "support.type.property-name"], ["=", "keyword.operator.assignment"],
    ['"x"', "string.quoted.double"],
  ]);
});
