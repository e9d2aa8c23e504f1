// What one does with the timeline: each test does it in a browser and looks at what the page says.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { chipless, open, root, useBrowser, work } from "./browser";

useBrowser();

const npu = join(work, "npu.html");
const gemini = join(work, "gemini.html");
const pair = join(work, "pair.html");

beforeAll(() => {
  chipless("report", "fixtures/npu/resblock/program.blob", "-o", npu);
  chipless("report", "fixtures/gemini/four_cores/schedule.json", "--network", "fixtures/gemini/four_cores/network.json", "-o", gemini);
  chipless("report", "fixtures/npu/var_fwlm/program.blob", "--against", "fixtures/npu/var_prof/program.blob", "-o", pair);
}, 60_000);

/** The state in the page's address, when it has all of these. */
async function state(page: Page, ...names: string[]): Promise<URLSearchParams> {
  await page.waitForFunction((names) => names.every((name) => new URLSearchParams(location.hash.slice(1)).has(name)), names, { timeout: 5000 });
  return new URLSearchParams(new URL(page.url()).hash.slice(1));
}

const rows = (page: Page) => page.evaluate(() => window.chipless.rows());
const row = async (page: Page, name: string) => {
  const found = (await rows(page)).find((row) => row.name === name);
  if (!found) throw new Error(`no row ${name}`);
  return found;
};
const tasks = (page: Page) => page.evaluate(() => Array.from({ length: window.chipless.count }, (_, i) => window.chipless.task(i)));
const axis = async (page: Page) => {
  const box = await page.getByTestId("timeline").boundingBox();
  const [{ x }] = await rows(page);
  if (!box) throw new Error("no timeline");
  return { left: x, wide: box.x + box.width - x, y: box.y + 8 };
};
const focus = (page: Page) => page.getByTestId("timeline").focus();

test("a task under the pointer says what it is, a gap what was waited for", async () => {
  const { page } = await open(npu);
  const all = await tasks(page);
  const long = all.reduce((best, task, i) => (task.end_ns - task.start_ns > all[best].end_ns - all[best].start_ns ? i : best), 0);
  const at = await page.evaluate((i) => window.chipless.locate(i), long);
  await page.mouse.move(at?.x ?? 0, at?.y ?? 0);
  const tip = page.getByTestId("tip");
  await tip.waitFor();
  expect(await tip.innerText()).toContain(`${all[long].name} ${all[long].operation}`);
  const { x, y } = await row(page, "dpu0");
  await page.mouse.move(x + 30, y);
  await page.waitForFunction(() => document.querySelector("[data-testid=tip]")?.textContent?.includes("dpu0 stands still before dpu0[0]"));
  expect(await tip.innerText()).toMatch(/waited [\d.]+ µs \(sync\) on barrier/);
  await page.context().close();
});

test("an area drawn on the axis has sums over all lanes, and on lanes over these", async () => {
  const { page, said } = await open(npu);
  const { left, wide, y } = await axis(page);
  await page.mouse.move(left + 0.3 * wide, y);
  await page.mouse.down();
  await page.mouse.move(left + 0.7 * wide, y, { steps: 4 });
  await page.mouse.up();
  const [start, end] = ((await state(page, "area")).get("area") ?? "").split("-").map(Number);
  const inside = (await tasks(page)).filter((task) => task.end_ns * 1000 > start && task.start_ns * 1000 < end);
  const sums = page.getByTestId("sums");
  const busy = inside.reduce((sum, task) => sum + Math.min(task.end_ns * 1000, end) - Math.max(task.start_ns * 1000, start), 0);
  expect(await sums.innerText()).toContain(`${inside.length} tasks, ${(busy / 1e6).toFixed(2)} µs busy`);
  // Shift and a drag over two lanes.
  const [one, two] = [await row(page, "dpu0"), await row(page, "dpu1")];
  await page.keyboard.down("Shift");
  await page.mouse.move(left + 2, one.y);
  await page.mouse.down();
  await page.mouse.move(left + wide - 4, two.y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const dpus = (await tasks(page)).filter((task) => ["dpu0", "dpu1"].includes(task.queue)).length;
  await sums.getByText(`${dpus} tasks`).waitFor();
  expect(await page.getByTestId("details").first().innerText()).toContain("on 2 of");
  // A click on the axis takes it back.
  await page.mouse.click(left + 10, y);
  await sums.waitFor({ state: "detached" });
  expect(said).toEqual([]);
  await page.context().close();
});

test("sums, fit and the way back by keys alone", async () => {
  const { page } = await open(npu);
  await focus(page);
  const whole = await page.evaluate(() => window.chipless.view());
  await page.keyboard.press("m");
  const count = await page.evaluate(() => window.chipless.count);
  await page.getByTestId("sums").getByText(`${count} tasks`).waitFor();
  await page.keyboard.press("Escape");
  await page.getByTestId("sums").waitFor({ state: "detached" });
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("f");
  const fitted = await page.evaluate(() => window.chipless.view());
  expect(fitted.end_ns - fitted.start_ns).toBeLessThan(whole.end_ns / 4);
  await page.keyboard.press("f");
  expect(await page.evaluate(() => window.chipless.view())).toEqual(whole);
  await page.context().close();
});

test("lanes are pinned and groups folded, by pointer and keys", async () => {
  const { page } = await open(npu);
  const names = (await rows(page)).map((row) => row.name);
  expect(names.slice(0, 4)).toEqual(["dma0", "dma0.cmx", "dma0.ddr", "dma1"]);
  const dpu = await row(page, "dpu0");
  await page.mouse.click(dpu.x - 12, dpu.y);
  await page.waitForFunction(() => window.chipless.rows()[0].name === "dpu0" && window.chipless.rows()[0].pinned);
  const group = await row(page, "dma0");
  await page.mouse.click(group.x - 60, group.y);
  await page.waitForFunction(() => !window.chipless.rows().some((row) => row.name === "dma0.ddr"));
  // A task in a folded group opens it when it is found.
  await page.getByTestId("search").fill("dma0.ddr[1]");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.chipless.rows().some((row) => row.name === "dma0.ddr"));
  await focus(page);
  await page.keyboard.press("p");
  await page.waitForFunction(() => window.chipless.rows()[0].name === "dma0.ddr");
  await page.keyboard.press("c");
  // What is pinned stays.
  await page.waitForFunction(() => !window.chipless.rows().some((row) => row.name === "dma0.cmx"));
  expect((await rows(page))[0]).toMatchObject({ name: "dma0.ddr", pinned: true });
  await page.keyboard.press("p");
  await page.keyboard.press("Shift+C");
  await page.keyboard.press("Shift+C");
  await page.waitForFunction((lanes) => window.chipless.rows().filter((row) => row.kind === "lane").length === lanes, 1);
  await page.context().close();
});

test("search counts its matches and goes from one to the next and back", async () => {
  const { page } = await open(npu);
  const all = await tasks(page);
  const operation = all.find((task) => task.queue === "dpu0")?.operation ?? "";
  const matches = all.filter((task) => `${task.name}\n${task.operation}`.includes(operation));
  await page.getByTestId("search").fill(operation.toUpperCase());
  await page.keyboard.press("Enter");
  await page.getByTestId("matches").getByText(`${matches.length} of ${all.length} tasks`).waitFor();
  const selected = () => page.evaluate(() => window.chipless.selected());
  expect(await selected()).toBe(matches[0].name);
  await page.keyboard.press("Enter");
  expect(await selected()).toBe(matches[1].name);
  await page.keyboard.press("Shift+Enter");
  expect(await selected()).toBe(matches[0].name);
  await page.getByTestId("search").fill("nobody");
  await page.keyboard.press("Enter");
  await page.getByText('No task, operation or layer has "nobody" in its name.').waitFor();
  await page.context().close();
});

test.each([false, true])("operations have colours, transfers greys, and no two are alike (dark: %s)", async (dark) => {
  const { page } = await open(npu, { dark });
  const legend = await page.getByTestId("legend").locator("li[data-color]").evaluateAll((items) => items.map((item) => [item.textContent, (item as HTMLElement).dataset.color ?? ""]));
  const colors = legend.map(([, color]) => color);
  expect(new Set(colors).size).toBe(colors.length);
  const spread = (color: string) => {
    const values = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
    return Math.max(...values) - Math.min(...values);
  };
  for (const [name, color] of legend) expect(spread(color ?? "") < 16, name ?? "").toBe(["dma", "fetch", "register write"].includes(name ?? ""));
  await page.context().close();
});

test("the address opens the same view elsewhere", async () => {
  const { page } = await open(npu);
  const all = await tasks(page);
  await page.getByTestId("search").fill("dpu0[1]");
  await page.keyboard.press("Enter");
  await focus(page);
  for (const key of ["p", "w", "d"]) await page.keyboard.press(key);
  await page.getByLabel("Critical path alone").check();
  const found = await state(page, "view", "task", "search", "critical", "pin");
  const view = await page.evaluate(() => window.chipless.view());
  const again = await open(npu, { state: found.toString() });
  expect(await again.page.evaluate(() => window.chipless.selected())).toBe("dpu0[1]");
  expect((await again.page.evaluate(() => window.chipless.view())).start_ns).toBeCloseTo(view.start_ns, 2);
  expect((await rows(again.page))[0]).toMatchObject({ name: "dpu0", pinned: true });
  expect(await again.page.getByLabel("Critical path alone").isChecked()).toBe(true);
  expect(await again.page.getByTestId("search").inputValue()).toBe("dpu0[1]");
  await again.page.context().close();
  // What does not fit the run is left out.
  const odd = await open(npu, { state: `task=${all.length}&layer=x&view=9-1&area=1-2-999999&pin=%00&fold=<script>&search=${"x".repeat(5000)}` });
  expect(await odd.page.evaluate(() => window.chipless.selected())).toBeNull();
  expect(odd.said).toEqual([]);
  await odd.page.context().close();
  await page.context().close();
});

test("two runs have one axis, one view and one selection", async () => {
  const { page, said } = await open(pair);
  const shown = (id: string) => page.getByTestId(id).getAttribute("aria-label").then((label) => /: \d+ lanes, (.*?)\. w/.exec(label ?? "")?.[1]);
  expect(await shown("timeline-against")).toBe(await shown("timeline"));
  await focus(page);
  for (const key of ["w", "w", "d"]) await page.keyboard.press(key);
  await page.waitForTimeout(50);
  expect(await shown("timeline-against")).toBe(await shown("timeline"));
  // A task and its match, both ways.
  await page.getByTestId("search").fill("dma0.cmx[3]");
  await page.keyboard.press("Enter");
  const panels = page.getByTestId("details");
  await page.waitForFunction(() => document.querySelectorAll("[data-testid=details] h3").length === 2);
  const [one, two] = await panels.locator("h3").allInnerTexts();
  expect(one).toBe("dma0.cmx[3]");
  const listing = (n: number) => panels.nth(n).locator("pre").innerText();
  const moved = (text: string) => /w (io\.NetworkOutput\S+)/.exec(text)?.[1];
  expect(moved(await listing(1)), two).toBe(moved(await listing(0)));
  await page.getByTestId("timeline-against").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((old) => document.querySelectorAll("[data-testid=details] h3")[1]?.textContent !== old, two);
  expect(await panels.nth(0).locator("h3").innerText()).not.toBe(one);
  // Each for itself.
  await page.getByLabel("One view for both").uncheck();
  const before = await shown("timeline");
  await page.getByTestId("timeline-against").focus();
  await page.keyboard.press("w");
  await page.waitForTimeout(50);
  expect(await shown("timeline")).toBe(before);
  expect(await shown("timeline-against")).not.toBe(before);
  expect(said).toEqual([]);
  await page.context().close();
});

test("the network is that of the file, and its layers lead to their tasks", async () => {
  const { page, said } = await open(gemini);
  const network = page.getByTestId("network");
  const layers: Record<string, { previous_layer: string[] }> = JSON.parse(readFileSync(join(root, "fixtures/gemini/four_cores/network.json"), "utf8"));
  const wanted = Object.entries(layers).flatMap(([to, { previous_layer }]) => previous_layer.filter((from) => layers[from]).map((from) => `${from} to ${to}`));
  const edges = await network.locator("path title").evaluateAll((titles) => titles.map((title) => title.textContent?.split(":")[0]));
  expect(edges.sort()).toEqual(wanted.sort());
  await network.locator('[data-layer="Conv_2"]').click();
  await page.getByTestId("details").getByText("Layer Conv_2").waitFor();
  expect(await network.locator('[data-layer="Conv_2"]').getAttribute("aria-pressed")).toBe("true");
  // Along an edge by keys.
  await network.locator('[data-layer="Conv_2"]').focus();
  await page.keyboard.press("ArrowRight");
  await page.getByTestId("details").getByText("Layer Add_3").waitFor();
  // A click in the lane of layers, and from a task to its layer.
  await page.getByTestId("minimap").scrollIntoViewIfNeeded();
  const lane = await row(page, "layers");
  await page.mouse.click(lane.x + 20, lane.y);
  await page.getByTestId("details").getByText("Layer Conv_0").or(page.getByTestId("details").getByText("Layer MaxPool_1")).waitFor();
  await page.getByTestId("table-tasks").getByRole("searchbox").fill("Conv_last");
  await page.getByTestId("table-tasks").locator("tbody button").first().click();
  await page.waitForFunction(() => document.querySelector('[data-layer="Conv_last"]')?.getAttribute("aria-pressed") === "true");
  expect(said).toEqual([]);
  await page.context().close();
});

test("headlines are there for every size of program, and memory is the program's scratchpad", async () => {
  for (const file of [npu, gemini, pair]) {
    const { page } = await open(file);
    const summary = await page.getByTestId("summary").innerText();
    expect(summary).toMatch(/Most of the critical path\s+\S+/);
    expect(summary).toMatch(/Peak of \S+ \(scratchpad\)/);
    await page.context().close();
  }
});

/** A NEFF of so many copies on three engines. */
function large(copies: number): string {
  const engine = (name: string, n: number) => [`engine ${name}`, ...Array.from({ length: copies }, () => `COPY dst=fp32@${0x4400 + 0x200 * n}[1,0,0,0][48,1,1,1] src=fp32@0x4200[1,0,0,0][48,1,1,1] channels=32`)];
  const head = ["neff lanes trn2", "input x float32 [32, 48]", "output out float32 [32, 48]", "subgraph sg00", "queue q dynamic owner=pool queues=16 semaphores=24,25,26,27 scratch=0:16384", "var SB state-buffer", "var x input", "var out output", "var T dge-table x out"];
  const text = [...head, ...["pool", "act", "dve"].flatMap(engine)].join("\n");
  writeFileSync(join(work, "large.asm"), `${text}\n`);
  chipless("pack", join(work, "large.asm"), join(work, "large.neff"));
  return join(work, "large.neff");
}

test("a long program has its headlines, opens fast and moves smoothly", async () => {
  const file = join(work, "large.html");
  chipless("report", large(50_000), "-o", file);
  const begun = performance.now();
  const { page, said } = await open(file);
  // 0.3 s on an idle machine with two cores.
  expect(performance.now() - begun).toBeLessThan(5000);
  expect(await page.getByTestId("summary").innerText()).toMatch(/Most of the critical path\s+\S+/);
  await page.getByLabel("Critical path alone").check();
  const frames = await page.evaluate(async () => {
    const all = window.chipless.latency_ns;
    const found: number[] = [];
    for (let i = 0; i < 30; i++) {
      const from = performance.now();
      window.chipless.setView(all * 0.01 * i, all * (0.6 + 0.01 * i));
      await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
      found.push(performance.now() - from);
    }
    return found.sort((a, b) => a - b);
  });
  // Two frames: 33 ms on an idle machine.
  expect(frames[15]).toBeLessThan(150);
  expect(said).toEqual([]);
  await page.context().close();
}, 120_000);

test("names with HTML, script and ends of elements are text", async () => {
  const hostile = "</script><img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";
  const text = (name: string) => readFileSync(join(root, "fixtures/gemini/four_cores", name), "utf8").replaceAll('"Conv_2"', JSON.stringify(hostile));
  const schedule = join(work, "hostile<b>.json");
  writeFileSync(schedule, text("schedule.json"));
  writeFileSync(join(work, "hostile.network.json"), text("network.json"));
  const file = join(work, "hostile.html");
  chipless("report", schedule, "--network", join(work, "hostile.network.json"), "-o", file);
  const { page, said, asked } = await open(file);
  await page.getByTestId("search").fill("onerror");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.chipless.selected() !== null);
  expect(await page.getByTestId("details").innerText()).toContain(hostile);
  expect(await page.getByTestId("network").locator("title").allTextContents()).toContainEqual(expect.stringContaining(hostile));
  expect(await page.evaluate(() => [(window as unknown as Record<string, unknown>).hacked, document.querySelectorAll("img:not([src^='data:'])").length])).toEqual([undefined, 0]);
  expect(await page.locator("h1").innerText()).toContain("hostile<b>.json");
  expect(said).toEqual([]);
  expect(asked.filter((url) => !/^(file|data|blob):/.test(url))).toEqual([]);
  await page.context().close();
});
