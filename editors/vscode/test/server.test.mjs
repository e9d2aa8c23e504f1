// The language server, asked by the client library of VS Code (vscode-languageserver-protocol on vscode-jsonrpc).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { pathToFileURL } from "node:url";
import protocol from "vscode-languageserver-protocol/node";
import { chipless, fixture, json } from "./support.mjs";

const { CancellationTokenSource, StreamMessageReader, StreamMessageWriter, createProtocolConnection } = protocol;

/** A client, and what it is told of each document. */
async function connect(t) {
  const server = spawn(chipless(), ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => server.kill());
  const connection = createProtocolConnection(new StreamMessageReader(server.stdout), new StreamMessageWriter(server.stdin));
  const found = new Map();
  const waiting = [];
  connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) => {
    found.set(`${params.uri} ${params.version}`, params.diagnostics);
    for (const look of waiting.splice(0)) {
      look();
    }
  });
  connection.listen();
  const { capabilities } = await connection.sendRequest(protocol.InitializeRequest.type, { processId: null, rootUri: null, capabilities: {} });
  await connection.sendNotification(protocol.InitializedNotification.type, {});
  const diagnostics = async (uri, version) => {
    while (!found.has(`${uri} ${version}`)) {
      await new Promise((resolve) => waiting.push(resolve));
    }
    return found.get(`${uri} ${version}`);
  };
  const open = async (uri, languageId, text) => {
    await connection.sendNotification(protocol.DidOpenTextDocumentNotification.type, { textDocument: { uri, languageId, version: 1, text } });
    return diagnostics(uri, 1);
  };
  const close = async () => {
    await connection.sendRequest(protocol.ShutdownRequest.type);
    const ended = new Promise((resolve) => server.on("exit", resolve));
    await connection.sendNotification(protocol.ExitNotification.type);
    assert.equal(await ended, 0);
    connection.dispose();
  };
  return { connection, capabilities, diagnostics, open, close };
}

test("a DFG is opened, changed, asked about and fixed", async (t) => {
  const { connection, capabilities, diagnostics, open, close } = await connect(t);
  assert.equal(capabilities.positionEncoding, "utf-16");
  const uri = "file:///kernel.dfg";
  assert.deepEqual(await open(uri, "chipless-dfg", "Input64: a\nb = Add_I64(a, 1)\nOutput64: b\n"), []);
  const range = { start: { line: 1, character: 4 }, end: { line: 1, character: 11 } };
  await connection.sendNotification(protocol.DidChangeTextDocumentNotification.type, { textDocument: { uri, version: 2 }, contentChanges: [{ range, text: "Ad_I64" }] });
  const [finding] = await diagnostics(uri, 2);
  assert.equal(finding.code, "dfg-unknown-operation");
  const [action] = await connection.sendRequest(protocol.CodeActionRequest.type, { textDocument: { uri }, range: finding.range, context: { diagnostics: [finding] } });
  assert.deepEqual(action.edit.changes[uri].map((edit) => edit.newText), ["Add_I64"]);
  const hover = await connection.sendRequest(protocol.HoverRequest.type, { textDocument: { uri }, position: { line: 0, character: 2 } });
  assert.match(hover.contents.value, /declares a port into the graph/);
  await close();
});

test("every language of package.json is one of the server's", async (t) => {
  const { connection, open, close } = await connect(t);
  for (const { id } of json("package.json").contributes.languages) {
    const uri = `untitled:${id}`;
    await open(uri, id, "");
    const completion = await connection.sendRequest(protocol.CompletionRequest.type, { textDocument: { uri }, position: { line: 0, character: 0 } });
    // Of machine files only the machine that is named says what there is.
    assert.ok(completion.items.length > 0 || id === "chipless-machine", id);
  }
  await close();
});

test("files of every kind are clean, and have an outline", async (t) => {
  const { connection, open, close } = await connect(t);
  for (const [name, language] of [
    ["dsa/row_sums.dfg", "chipless-dfg"], ["device/two_networks.yaml", "chipless-workload"], ["spu/dense/iospec.yaml", "chipless-iospec"], ["neuron/argmax/program.asm", "chipless-asm"],
  ]) {
    const uri = pathToFileURL(fixture(name)).href;
    const errors = (await open(uri, language, readFileSync(fixture(name), "utf8"))).filter((d) => d.severity === 1);
    assert.deepEqual(errors, [], name);
    const symbols = await connection.sendRequest(protocol.DocumentSymbolRequest.type, { textDocument: { uri } });
    assert.ok(symbols.length > 0, name);
  }
  await close();
});

test("what is wrong with a program is shown at the lines of its text", async (t) => {
  const { open, close } = await connect(t);
  const text = readFileSync(fixture("broken/ring.asm"), "utf8");
  const found = await open(pathToFileURL(fixture("broken/ring.asm")).href, "chipless-asm", text);
  const lines = text.split("\n");
  assert.deepEqual(found.map((d) => d.code), ["deadlock"]);
  assert.match(lines[found[0].range.start.line], /^COPY .* \$S\[6\]>=1/);
  const related = found[0].relatedInformation.map((r) => lines[r.location.range.start.line].split(" ")[0]);
  assert.deepEqual(related, ["COPY", "TENSOR_TENSOR", "EVENT_SEMAPHORE"]);
  await close();
});

test("a request that is taken back is answered as cancelled, and the next one is served", async (t) => {
  const { connection, open, close } = await connect(t);
  const uri = "file:///long.dfg";
  const lines = Array.from({ length: 4000 }, (_, n) => `v${n} = Add_I64(a, ${n})`);
  await open(uri, "chipless-dfg", ["Input64: a", ...lines, ""].join("\n"));
  const source = new CancellationTokenSource();
  const first = connection.sendRequest(protocol.DocumentSymbolRequest.type, { textDocument: { uri } });
  const second = connection.sendRequest(protocol.SemanticTokensRequest.type, { textDocument: { uri } }, source.token);
  source.cancel();
  assert.equal((await first).length, 4001);
  await assert.rejects(second, (error) => error.code === protocol.LSPErrorCodes.RequestCancelled);
  assert.ok((await connection.sendRequest(protocol.FoldingRangeRequest.type, { textDocument: { uri } })) !== undefined);
  await close();
});
