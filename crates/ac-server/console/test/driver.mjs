// What the tests need: a server in a folder of its own, a browser, and the moves of a person.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const acode = process.env.AC_ACODE;
export const shots = process.env.AC_SHOTS;

/** The browser of this machine, if it has one. */
export function findBrowser() {
  if (process.env.AC_CHROMIUM) return process.env.AC_CHROMIUM;
  const folders = (process.env.PATH ?? "").split(":");
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find((path) => existsSync(path));
}

/** Why nothing can be tested here, if so. */
export function missing() {
  if (!acode || !existsSync(acode)) return "AC_ACODE names no acode program";
  if (!findBrowser()) return "there is no Chromium on this machine; AC_CHROMIUM may name one";
  return null;
}

export async function openBrowser() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: findBrowser(), headless: true, args: FLAGS });
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** `acode serve` in a project of its own. */
export class Server {
  static async start(args = [], env = {}, prepare = () => ({})) {
    const server = new Server();
    server.root = mkdtempSync(join(tmpdir(), "console-"));
    server.folder = join(server.root, "project");
    mkdirSync(server.folder);
    writeFileSync(join(server.folder, "README.md"), "# Notes\n\nA small program that keeps notes.\n");
    server.port = await freePort();
    server.args = args;
    server.env = env;
    Object.assign(server, prepare(server.folder, join(server.root, "data")));
    await server.up();
    return server;
  }

  get url() {
    return `http://127.0.0.1:${this.port}/`;
  }

  async up() {
    const options = { cwd: this.folder, env: { ...process.env, AC_NO_PROBE: "1", ...this.env }, stdio: ["ignore", "pipe", "pipe"] };
    this.child = spawn(acode, ["--data", join(this.root, "data"), "serve", "--listen", `127.0.0.1:${this.port}`, ...this.args], options);
    this.log = "";
    const hear = (chunk) => (this.log += chunk);
    this.child.stdout.on("data", hear);
    this.child.stderr.on("data", hear);
    const until = Date.now() + 30_000;
    for (;;) {
      if (this.child.exitCode !== null) throw new Error(`acode serve ended: ${this.log}`);
      const answered = await fetch(this.url).then((response) => response.ok).catch(() => false);
      if (answered) return;
      if (Date.now() > until) throw new Error(`acode serve did not answer: ${this.log}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** As a power cut would. */
  async kill() {
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await gone;
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const gone = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGTERM");
      await gone;
    }
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** A wire to a server that can be cut, and mended. */
export class Wire {
  static async to(port) {
    const wire = new Wire();
    wire.sockets = new Set();
    wire.server = createServer((near) => {
      if (wire.isCut) return near.destroy();
      const far = connect(port, "127.0.0.1");
      for (const [one, other] of [[near, far], [far, near]]) {
        wire.sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          wire.sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
      return undefined;
    });
    await new Promise((resolve) => wire.server.listen(0, "127.0.0.1", resolve));
    wire.server.unref();
    wire.url = `http://127.0.0.1:${wire.server.address().port}/`;
    return wire;
  }

  cut() {
    this.isCut = true;
    for (const socket of this.sockets) socket.destroy();
  }

  mend() {
    this.isCut = false;
  }

  close() {
    this.cut();
    this.server.close();
  }
}

/** Runs acode to its end. */
export function runAcode(args, cwd) {
  return spawnSync(acode, args, { cwd, encoding: "utf8" });
}

/** A page, and what must never happen on it. */
export async function openPage(browser, url, options = {}, ready = "#mode option") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  const problems = [];
  const origin = new URL(url).origin;
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(origin) && !to.startsWith("data:") && !to.startsWith("blob:")) problems.push(`request: ${to}`);
  });
  await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)));
  page.on("console", (message) => message.text().startsWith("policy:") && problems.push(message.text()));
  await page.goto(url);
  await page.locator(ready).first().waitFor({ state: "attached" });
  return { page, problems, close: () => context.close() };
}

export async function say(page, text) {
  await page.locator("#message").fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until what is asked has this headline. */
export async function waitsFor(page, headline) {
  await page.locator("#wait h2").filter({ hasText: headline }).waitFor({ timeout: 20_000 });
}

export const press = (page, name) => page.locator("#wait").getByRole("button", { name, exact: true }).click();

/** Nothing is asked and nothing works. */
export async function rests(page) {
  await page.waitForFunction(() => document.getElementById("status").dataset.state === "idle" && document.getElementById("wait").hidden, null, { timeout: 30_000 });
}

export async function shot(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), animations: "disabled" });
}
