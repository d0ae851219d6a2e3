import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { type Browser, chromium } from "playwright-core";
import { browserPackages, ensurePackages } from "../../../../hack/cluster/packages.ts";

/** A real Chromium, headless, that reaches one server and nothing else. */
export interface LoneBrowser {
  browser: Browser;
  /** Where the page finds that server. */
  url: string;
  close: () => Promise<void>;
}

/**
 * Installs Debian's Chromium where it is missing, and starts it.
 * @param target address of the server, `http://host:port`
 * @param log file for the installation
 */
export async function launchBrowser(target: string, log: string): Promise<LoneBrowser> {
  await ensurePackages(browserPackages, log);
  const folder = await mkdtemp(join(tmpdir(), "slipway-browser-"));
  const socket = join(folder, "out.sock");
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((inside) => {
    const outside = connect(Number(port), hostname);
    for (const one of [inside, outside]) {
      open.add(one);
      one.once("close", () => open.delete(one));
    }
    pipeline(inside, outside, inside, () => undefined);
  }).listen(socket);
  await once(server, "listening");
  const stop = async () => {
    server.close();
    for (const one of open) {
      one.destroy();
    }
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const browser = await chromium.launch({
      executablePath: join(import.meta.dirname, "alone.sh"),
      // The tests run as root, for whom Chromium's own sandbox does not start.
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
      env: {
        ...process.env,
        SLIPWAY_BROWSER_NODE: process.execPath,
        SLIPWAY_BROWSER_PORT: port,
        SLIPWAY_BROWSER_SOCKET: socket,
      },
    });
    const close = async () => {
      await browser.close();
      await stop();
    };
    return { browser, url: `http://127.0.0.1:${port}`, close };
  } catch (error) {
    await stop();
    throw error;
  }
}
