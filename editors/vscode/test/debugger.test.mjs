// The debugger, asked by the test client of VS Code (@vscode/debugadapter-testsupport).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import test from "node:test";
import { DebugClient } from "@vscode/debugadapter-testsupport";
import { chipless, fixture, json } from "./support.mjs";

/** A client, and the capabilities of the adapter. */
async function connect(t) {
  const client = new DebugClient("chipless", "", "chipless");
  // The class starts adapters that are scripts; ours is a command.
  const adapter = spawn(chipless(), ["debug", "--dap"], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => adapter.kill());
  client.connect(adapter.stdout, adapter.stdin);
  const { body } = await client.initializeRequest();
  return { client, capabilities: body };
}

/** A client that has launched a program. */
async function launch(t, program, more = {}) {
  const { client, capabilities } = await connect(t);
  const initialized = client.waitForEvent("initialized");
  const launched = client.launchRequest({ program, stopOnEntry: true, ...more });
  await initialized;
  return { client, capabilities, launched };
}

test("a program is stepped forwards and backwards", async (t) => {
  const { client, capabilities, launched } = await launch(t, fixture("dsa/kernels/dot.dfg"));
  assert.equal(capabilities.supportsStepBack, true);
  const entry = client.waitForEvent("stopped");
  await client.configurationDoneRequest();
  await launched;
  const stop = await entry;
  assert.equal(stop.body.reason, "entry");
  const { threads } = (await client.threadsRequest()).body;
  assert.ok(threads.length > 0);
  const threadId = stop.body.threadId ?? threads[0].id;
  const effect = async () => (await client.evaluateRequest({ expression: "effect" })).body.result;
  assert.equal(await effect(), "0");
  const step = async (command) => {
    const stopped = client.waitForEvent("stopped");
    await client.customRequest(command, { threadId });
    await stopped;
    return effect();
  };
  assert.equal(await step("stepIn"), "1");
  assert.equal(await step("stepBack"), "0");
  const frames = (await client.stackTraceRequest({ threadId })).body.stackFrames;
  assert.ok(frames[0].line > 0 && frames[0].source, JSON.stringify(frames[0]));
  const { scopes } = (await client.scopesRequest({ frameId: frames[0].id })).body;
  assert.deepEqual(scopes.map((scope) => scope.name), ["Operands", "Syncs", "Buffers"]);
  const { variables } = (await client.variablesRequest({ variablesReference: scopes[2].variablesReference })).body;
  assert.ok(variables.length > 0);
  await client.disconnectRequest();
});

test("a breakpoint on a task of a NEFF is hit", async (t) => {
  const { client, launched } = await launch(t, fixture("neuron/softmax/program.neff"), { stopOnEntry: false });
  await client.setFunctionBreakpointsRequest({ breakpoints: [{ name: "sg00.act[0]" }] });
  const stopped = client.waitForEvent("stopped");
  await client.configurationDoneRequest();
  await launched;
  assert.match((await stopped).body.reason, /breakpoint/);
  await client.disconnectRequest();
});

test("what package.json offers for a launch is what the adapter takes", async (t) => {
  const { properties } = json("package.json").contributes.debuggers[0].configurationAttributes.launch;
  const given = { inputs: {}, seed: 3, order: "random:1", noVerify: true, stopOnEntry: true, options: [] };
  assert.deepEqual(Object.keys(properties).toSorted(), ["program", ...Object.keys(given)].toSorted());
  const { client, launched } = await launch(t, fixture("dsa/kernels/dot.dfg"), given);
  const stopped = client.waitForEvent("stopped");
  await client.configurationDoneRequest();
  await Promise.all([launched, stopped]);
  await client.disconnectRequest();
});

test("a file that is no program is refused with the message of run", async (t) => {
  const { client } = await connect(t);
  await assert.rejects(client.launchRequest({ program: fixture("dsa/none.dfg") }), /none\.dfg: cannot be read/);
  await client.disconnectRequest();
});
