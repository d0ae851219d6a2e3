import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { stateDir } from "../../../../hack/lib/paths.ts";
import type { LoneBrowser } from "./browser.ts";

/** How a page is displayed. */
export const looks = {
  desk: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, hasTouch: true },
} as const;
export type Look = keyof typeof looks;

export interface WatchedPage {
  page: Page;
  /** What a page should never do: errors and warnings, dialogs, broken policies, requests to others. */
  problems: string[];
  /** Every address that was asked for. */
  addresses: string[];
  close: () => Promise<void>;
}

/** A page of its own, without anything of another one's session. */
export async function watchedPage({ browser, url }: LoneBrowser, look: Look = "desk"): Promise<WatchedPage> {
  const context = await browser.newContext(looks[look]);
  const page = await context.newPage();
  // On a busy machine a browser of thirty processes is slow.
  page.setDefaultTimeout(90_000);
  const problems: string[] = [];
  const addresses: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      problems.push(`${message.type()}: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => problems.push(`thrown: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    addresses.push(request.url());
    // What the page has in memory is of its own origin, too.
    if (
      !request
        .url()
        .replace(/^blob:/, "")
        .startsWith(`${url}/`)
    ) {
      problems.push(`request: ${request.url()}`);
    }
  });
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => console.error("policy: " + event.violatedDirective + " " + event.blockedURI));`,
  );
  return { page, problems, addresses, close: () => context.close() };
}

/** Where screenshots are written. */
export const screenshots = join(stateDir, "logs", "test", "console");

/** Takes pictures of the whole page, in light and in dark. */
export async function pictures(page: Page, name: string, look: Look): Promise<void> {
  mkdirSync(screenshots, { recursive: true });
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(screenshots, `${name}-${look}-${colorScheme}.png`), fullPage: true });
  }
}
