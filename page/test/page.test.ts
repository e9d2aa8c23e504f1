// The page in a browser with the network off, for programs of all targets.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { browser, chipless, open, served, useBrowser, work } from "./browser";

useBrowser();

const fixtures: Record<string, string[]> = {
  npu: ["fixtures/npu/resblock/program.blob"],
  neuron: ["fixtures/neuron/matmul_five_engines/program.neff"],
  gemini: ["fixtures/gemini/four_cores/schedule.json", "--network", "fixtures/gemini/four_cores/network.json"],
  dsa: ["fixtures/dsa/kernels/dot.dfg"],
  spu: ["fixtures/spu/recurrent/plan.json"],
};

/** Clicks on so many tasks, each in a view of its own, open the right ones. */
async function click(page: Page, clicks: number) {
  const count = await page.evaluate(() => window.chipless.count);
  let seed = 5;
  for (let n = 0; n < clicks; n++) {
    seed = (seed * 48271) % 2147483647;
    const i = seed % count;
    const task = await page.evaluate((i) => window.chipless.task(i), i);
    const long = task.end_ns - task.start_ns;
    if (long <= 0) continue;
    await page.evaluate(([from, to]) => window.chipless.setView(from, to), [task.start_ns - 3 * long, task.end_ns + 3 * long]);
    const at = await page.evaluate((i) => window.chipless.locate(i), i);
    expect(at, task.name).not.toBeNull();
    if (!at) continue;
    await page.mouse.click(at.x, at.y);
    // It is drawn with the next frame.
    await page.waitForFunction((name) => window.chipless.selected() === name, task.name, { timeout: 5000 });
    await page.waitForFunction((name) => document.querySelector("[data-testid=details]")?.textContent?.startsWith(name), task.name);
  }
}

describe.each(Object.entries(fixtures))("%s", (name, args) => {
  const file = join(work, `${name}.html`);
  let summary: { tasks: number; queues: { name: string; tasks: number; busy_ns: number }[] };

  beforeAll(() => {
    chipless("report", ...args, "-o", file);
    summary = JSON.parse(chipless("run", ...args, "--timing-only", "--json"));
  }, 60_000);

  test("shows the run, without a network", async () => {
    expect(statSync(file).size).toBeLessThan(300_000);
    const { page, said, asked } = await open(file);
    expect(await page.evaluate(() => window.chipless.count)).toBe(summary.tasks);
    const busy = await page.evaluate(() => window.chipless.busy());
    for (const queue of summary.queues.filter((queue) => queue.tasks > 0)) {
      expect(Math.abs(busy[queue.name] - queue.busy_ns)).toBeLessThanOrEqual(2e-3 * summary.tasks);
    }
    for (const id of ["summary", "timeline", "minimap", "search", "memory", "table-tasks", ...(["gemini", "dsa", "spu"].includes(name) ? ["picture"] : [])]) {
      expect(await page.getByTestId(id).count(), id).toBeGreaterThan(0);
    }
    expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
    expect(said).toEqual([]);
    await page.context().close();
  });

  test("clicks open the right task", async () => {
    const { page, said } = await open(file);
    await click(page, 200);
    expect(said).toEqual([]);
    await page.context().close();
  }, 120_000);

  test("the keyboard is enough", async () => {
    const { page } = await open(file);
    await page.getByTestId("timeline").first().focus();
    const before = await page.evaluate(() => window.chipless.view());
    await page.keyboard.press("w");
    expect(await page.evaluate(() => window.chipless.view())).not.toEqual(before);
    await page.keyboard.press("?");
    await page.getByTestId("help").waitFor();
    await page.keyboard.press("Escape");
    const task = await page.evaluate((i) => window.chipless.task(i), Math.floor(summary.tasks / 2));
    await page.getByTestId("search").fill(task.name);
    await page.keyboard.press("Enter");
    await page.waitForFunction((name) => window.chipless.selected() === name, task.name, { timeout: 5000 });
    await page.context().close();
  });

  test.each([
    [390, 844, false],
    [1440, 900, true],
    [3840, 2160, false],
  ])("fits %i pixels", async (width, height, dark) => {
    const { page, said } = await open(file, { width, height, dark });
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(1);
    // No column of a table is cut off: only drawings and their text scroll sideways.
    const cut = await page.evaluate(() => [...document.querySelectorAll(".wide, .details")].filter((one) => !one.closest("figure") && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent?.slice(0, 60)));
    expect(cut).toEqual([]);
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(Number(/\d+/.exec(ground)?.[0]) < 100).toBe(dark);
    expect(said).toEqual([]);
    await page.context().close();
  });
});

test("two programs stand side by side", async () => {
  const file = join(work, "ab.html");
  chipless("report", "fixtures/npu/var_fwlm/program.blob", "--against", "fixtures/npu/var_prof/program.blob", "-o", file);
  const { page, said } = await open(file);
  expect(await page.getByTestId("against").count()).toBe(1);
  expect(await page.getByTestId("timeline-against").count()).toBe(1);
  expect(said).toEqual([]);
  await page.context().close();
});

test("a click in the memory picture shows the bytes of that instant", async () => {
  await served(["fixtures/npu/resblock/program.blob"], async (address) => {
    const page = await (await browser().newContext({ viewport: { width: 390, height: 844 } })).newPage();
    await page.goto(address);
    await page.evaluate(() => window.chipless.ready);
    const dump = page.locator("table.dump");
    const picture = page.locator("canvas.memory");
    await picture.scrollIntoViewIfNeeded();
    await picture.click({ position: { x: 200, y: 180 } });
    await dump.waitFor();
    const clicked = await page.getByTestId("bytes").textContent();
    expect(clicked).toMatch(/0x[0-9a-f]+ of cmx\d at [\d.]+ µs: byte /);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(1);
    // The same by keys alone.
    await page.getByRole("textbox", { name: "Address" }).fill("0x0");
    await page.getByRole("textbox", { name: "Instant in nanoseconds" }).fill("0");
    await page.keyboard.press("Enter");
    await page.getByText("not written yet").waitFor();
    await page.getByRole("textbox", { name: "Address" }).fill("here");
    await page.keyboard.press("Enter");
    await page.getByText('Expected an address such as 0x1f00 or 7936, found "here".').waitFor();
    await page.context().close();
  });
}, 60_000);

test("a run that keeps time alone says that it has no bytes", async () => {
  await served(["fixtures/npu/resblock/program.blob", "--timing-only"], async (address) => {
    const page = await (await browser().newContext()).newPage();
    await page.goto(address);
    await page.evaluate(() => window.chipless.ready);
    expect(await page.getByTestId("memory").textContent()).toContain("timing-only");
    expect(await page.getByTestId("bytes").count()).toBe(0);
    await page.context().close();
  });
}, 60_000);

test.each([390, 1440])("the transactions of a contract can be read at %i pixels", async (width) => {
  const file = join(work, "contract.html");
  chipless("report", "fixtures/spu/latched/iospec.yaml", "-o", file);
  const { page, said } = await open(file, { width, height: 844 });
  const picture = page.getByTestId("picture");
  const image = await picture.locator("img").boundingBox();
  // In its own size: letters of 13 pixels.
  expect(image?.width).toBeCloseTo(356, 0);
  expect(await picture.locator(".wide").first().getAttribute("tabindex")).toBe("0");
  await picture.locator("summary").focus();
  await page.keyboard.press("Enter");
  expect(await picture.locator("pre").innerText()).toContain("host → core 0  write latchedC");
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBeLessThanOrEqual(1);
  expect(said).toEqual([]);
  await page.context().close();
});

test("a dark page is printed on white", async () => {
  const file = join(work, "print.html");
  chipless("report", "fixtures/spu/latched/iospec.yaml", "-o", file);
  const { page } = await open(file, { dark: true });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe("rgb(255, 255, 255)");
  expect(await page.locator("figure img").evaluate((image) => getComputedStyle(image).filter)).toBe("none");
  await page.context().close();
});
