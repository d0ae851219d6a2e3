/** What the console's tests use: an organization with a project of each kind, and a browser. */
import { join } from "node:path";
import { connectLedger, issueCreditNote, payInvoice } from "@slipway/ledger";
import { ConcurrencyLimiter } from "@slipway/process";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { logDir } from "../../../hack/lib/paths.ts";
import { insertInvoice } from "../../kit/ledger/invoice.ts";
import { apiClient, createProject, deleteProjects, httpProject, untilStatus } from "./api.ts";
import { type LoneBrowser, launchBrowser } from "./browser/browser.ts";
import { type Look, type WatchedPage, watchedPage } from "./browser/page.ts";
import { gitProject, untilEnded } from "./builds.ts";
import { eventually } from "./eventually.ts";
import { connectRepository, createRepository } from "./git.ts";
import { throughIngress } from "./ingress.ts";
import { deleteJobs, Job } from "./jobs.ts";
import { admin, createOrganization } from "./organization.ts";
import { stack } from "./stack.ts";
import { ledgerUrl } from "./stack-observer.ts";

/** A script that runs opens a dialog. */
export const CANARY = `<img src=x onerror=alert(1)><script>alert(2)</script>"&amp;`;
/** Requests that the public project has answered. */
export const REQUESTS = 12;

const READING = [
  ...["read", "logs.read", "metrics.read", "billing.read", "alerts.read"].map(
    (permission) => `project.${permission} on project:*`,
  ),
  ...["budget", "invoices"].map((what) => `organization.${what}.read on organization:*`),
];

const NOTIFYING = [
  ...["read", "update"].map((permission) => `organization.webhooks.${permission} on organization:*`),
  ...["read", "alerts.read", "alerts.update", "autoscaling.update"].map(
    (permission) => `project.${permission} on project:*`,
  ),
];

export interface Console {
  browser: LoneBrowser;
  /** Good for reading alone. */
  key: { api_key: string; api_key_id: string };
  /** Good for notifications, alerts and the number of instances alone. */
  notifier: { api_key: string; api_key_id: string };
  /** Public, with the canary as its description. */
  shop: { id: string; domain: string };
  /** On a plan without metrics. */
  free: { id: string };
  /** From Git, with a build that has failed. */
  built: { id: string; build: string };
  /** A job with a run that has ended, and wrote the canary. */
  job: { id: string; run: string; started: string };
  /** Of R$7.31 with a payment and a credit note whose reason is the canary. Its organization has a budget of R$1,000. */
  invoice: string;
  remove: () => Promise<void>;
}

/** Makes all of it, and waits until there is something to see. */
export async function makeConsole(): Promise<Console> {
  const undo: (() => Promise<unknown>)[] = [];
  const remove = async () => {
    await Promise.all(undo.splice(0).map((step) => step()));
  };
  const kept = async <Thing>(making: Promise<Thing>, step: (thing: Thing) => Promise<unknown>) => {
    const thing = await making;
    undo.push(() => step(thing));
    return thing;
  };
  try {
    const name = `console-${Date.now().toString(36)}`;
    const [{ organization_id: organization, owner_token: token, api_key }, browser, repository] =
      await Promise.all([
        createOrganization("console"),
        kept(launchBrowser(stack.url, join(logDir, "browser-packages.log")), (launched) => launched.close()),
        kept(createRepository(name, { "package.json": "{}" }), (begun) => eventually(() => begun.remove())),
      ]);
    const call = apiClient(api_key);
    const create = (body: object) =>
      // A new organization's namespace may be a moment behind.
      kept(
        eventually(() => createProject(call, body)),
        ({ project_id }) => deleteProjects(call, [project_id]),
      );
    const script = `echo '${CANARY}'; sleep 2`;
    const keyWith = (grants: readonly string[]) =>
      admin<Console["key"]>(
        "api-key",
        "create",
        "--organization",
        organization,
        ...grants.flatMap((grant) => ["--grant", grant]),
      );
    const [key, notifier, shop, free, built, job, invoice] = await Promise.all([
      keyWith(READING),
      keyWith(NOTIFYING),
      create({ ...httpProject("the-shop-front"), description: CANARY }),
      create({ ...httpProject("free-of-charge", { exposure: "private" }), plan: "free" }),
      connectRepository(repository, { organization, token }).then((source) =>
        create(gitProject("from-the-git-server", source)),
      ),
      kept(Job.create(call, { name: "nightly-report", script }), (one) => deleteJobs([one])),
      issuedInvoice(organization),
      eventually(async () =>
        expect(await call("PUT", "/v1/organization/budget", { amount: "100000" })).toMatchObject({
          status: 200,
        }),
      ),
    ]);
    const { id: run, started_at: started } = await job.running();
    const { build_id: build } = built as typeof built & { build_id: string };
    await Promise.all([
      untilStatus(call, shop.project_id, "running"),
      job.ended(run),
      untilEnded(call, built.project_id, build),
    ]);
    for (let sent = 0; sent < REQUESTS; sent += 1) {
      await throughIngress(shop.domain, "/some/where");
    }
    return {
      browser,
      key,
      notifier,
      shop: { id: shop.project_id, domain: shop.domain },
      free: { id: free.project_id },
      built: { id: built.project_id, build },
      job: { id: job.id, run, started },
      invoice,
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The stack issues none before its first month has ended. Its operator settles the months before within moments of its start. */
async function issuedInvoice(organizationId: string): Promise<string> {
  const ledger = connectLedger({ url: await ledgerUrl(), applicationName: "observer" });
  try {
    const lines = [
      { projectId: "shop", plan: "basic", hours: 3, price: "236.123456789" },
      { projectId: "shop", plan: "free", hours: 1, price: "2" },
    ];
    const number = await eventually(() => insertInvoice(ledger, { organizationId, name: CANARY, lines }));
    const paid = await payInvoice(ledger, { number, reference: "transfer-1", amountCents: 100n });
    expect(paid).toBe("recorded");
    const credited = { number, reference: "outage-1", reason: CANARY, netCents: 10n };
    expect(await issueCreditNote(ledger, credited)).toMatchObject({ outcome: "recorded" });
    return number;
  } finally {
    await ledger.destroy();
  }
}

/** All pages at once are slower on a busy machine than one waits for any of them. */
const pages = new ConcurrencyLimiter({ perKey: 3 });

/**
 * Does something on a page of its own, in its turn, and holds that nothing happened on it that should not.
 * @param refusals what the browser itself may say of answers that the work is about
 */
export function look(
  { browser, key }: Console,
  by: Look,
  work: (page: Page, watched: WatchedPage) => Promise<unknown>,
  refusals = /^$/,
): Promise<void> {
  return pages.run("page", async () => {
    const watched = await watchedPage(browser, by);
    try {
      await work(watched.page, watched);
      expect(watched.problems.filter((problem) => !refusals.test(problem))).toEqual([]);
      expect(watched.addresses.filter((address) => address.includes(key.api_key))).toEqual([]);
    } finally {
      await watched.close();
    }
  });
}

/** What a browser says of an answer that is none of success, whoever asked for it. */
export const refused = (status: number): RegExp =>
  new RegExp(`Failed to load resource: .* status of ${status} `);

/** Signs in, at a view. */
export async function signIn({ browser, key }: Console, page: Page, hash = ""): Promise<void> {
  await page.goto(`${browser.url}/console${hash}`);
  await page.getByLabel("API key").fill(key.api_key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Where a project's part is. */
export const at = (id: string, ...parts: string[]): string => `#/${["project", id, ...parts].join("/")}`;
