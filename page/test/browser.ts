// A browser for the tests. Needs Chromium (CHROMIUM, or /usr/bin/chromium) and the binary (CHIPLESS, or what cargo has built).
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll } from "vitest";

export const root = new URL("../..", import.meta.url).pathname;
const builds = [process.env.CHIPLESS, join(root, "target/debug/chipless"), join(root, "target/release/chipless")];
const binary = builds.find((path) => path && existsSync(path)) ?? "target/debug/chipless";
export const work = mkdtempSync(join(tmpdir(), "chipless-page-"));

export function chipless(...args: string[]): string {
  return execFileSync(binary, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
}

let started: Browser | undefined;

export function browser(): Browser {
  if (!started) throw new Error("useBrowser() first");
  return started;
}

/** Starts a browser for the tests of a file, and removes what they wrote. */
export function useBrowser() {
  beforeAll(async () => {
    started = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    });
  }, 60_000);
  afterAll(async () => {
    await started?.close();
    rmSync(work, { recursive: true, force: true });
  });
}

export interface Opened {
  page: Page;
  /** What the console said. */
  said: string[];
  /** Addresses that were asked for. */
  asked: string[];
}

export async function open(file: string, { width = 1440, height = 900, dark = false, state = "" } = {}): Promise<Opened> {
  const context = await browser().newContext({ viewport: { width, height }, offline: true, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  const said: string[] = [];
  const asked: string[] = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`file://${file}${state && `#${state}`}`);
  await page.evaluate(() => window.chipless.ready);
  return { page, said, asked };
}

/** Serves a file, and does something with the address. */
export async function served(args: string[], then: (address: string) => Promise<void>) {
  const server = spawn(binary, ["view", ...args, "--no-open"], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const address = await new Promise<string>((resolve, reject) => {
      server.stdout.once("data", (line: Buffer) => resolve(line.toString().trim()));
      server.once("exit", () => reject(new Error("view has ended")));
    });
    await then(address);
  } finally {
    server.kill();
  }
}

