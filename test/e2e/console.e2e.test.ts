/** The console in a real Chromium, over an organization of its own. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiClient } from "./support/api.ts";
import { type Look, looks, pictures } from "./support/browser/page.ts";
import { at, CANARY, type Console, look, makeConsole, REQUESTS, refused, signIn } from "./support/console.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { admin, createOrganization } from "./support/organization.ts";

let there: Console;
beforeAll(async () => {
  there = await makeConsole();
});
afterAll(() => there?.remove());

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name });

describe.concurrent("signing in", () => {
  // Shows: docs/console.md#what-is-promised: a wrong key is rejected, a valid one is kept in the tab
  test("takes a key that is good for reading alone, keeps it in the tab, and forgets it", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await page.goto(`${there.browser.url}/console`);
        const field = page.getByLabel("API key");
        await field.fill(`${there.key.api_key.slice(0, -1)}x`);
        await field.press("Enter");
        await page.getByRole("alert").getByText("This API key is not accepted.").waitFor();
        expect(await page.evaluate("sessionStorage.length + localStorage.length")).toBe(0);
        await field.fill(there.key.api_key);
        await field.press("Enter");
        await heading(page, "Projects").waitFor();
        await page.reload();
        await heading(page, "Projects").waitFor();
        expect(await page.evaluate("[sessionStorage.length, localStorage.length, document.cookie]")).toEqual([
          1,
          0,
          "",
        ]);
        await page.getByRole("button", { name: "Sign out" }).click();
        await field.waitFor();
        expect(await page.evaluate("sessionStorage.length + localStorage.length")).toBe(0);
      },
      refused(401),
    );
  });

  // Shows: docs/console.md#what-is-promised: everything can be operated by keyboard
  test("works by keyboard alone, and focuses the heading of what was opened", async () => {
    await look(there, "desk", async (page) => {
      await page.goto(`${there.browser.url}/console`);
      await page.getByLabel("API key").waitFor();
      const focused = () => page.evaluate("document.activeElement.textContent || document.activeElement.id");
      expect(await focused()).toBe("key");
      await page.keyboard.type(there.key.api_key);
      await page.keyboard.press("Enter");
      const link = page.getByRole("link", { name: "the-shop-front" });
      await link.waitFor();
      expect(await focused()).toBe("Projects");
      for (let steps = 0; (await focused()) !== "the-shop-front"; steps += 1) {
        expect(steps).toBeLessThan(12);
        await page.keyboard.press("Tab");
      }
      await page.keyboard.press("Enter");
      await heading(page, "the-shop-front").waitFor();
      await eventually(async () => expect(await focused()).toBe("the-shop-front"));
      for (let steps = 0; (await focused()) !== "Logs"; steps += 1) {
        expect(steps).toBeLessThan(8);
        await page.keyboard.press("Tab");
      }
      await page.keyboard.press("Enter");
      await page.getByRole("log").waitFor();
      // From the page's beginning past the elements of every page.
      await page.evaluate("document.activeElement.blur(), document.querySelector('#skip').focus()");
      await page.keyboard.press("Enter");
      expect(await focused()).toBe("the-shop-front");
    });
  });
});

describe.concurrent("notifications", () => {
  const form = async (page: Page, kind: string, address: string) => {
    await signIn({ ...there, key: there.notifier }, page, `#/notifications/${kind}/new`);
    await page.getByLabel(kind === "webhooks" ? "URL" : "Address", { exact: true }).fill(address);
    await page.getByLabel("run.failed").check();
    await page.getByRole("button", { name: "Create" }).click();
  };

  // Shows: docs/console.md#what-is-promised: webhooks: created with their secret shown once
  test("a webhook is created, tested, changed and deleted", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        // Refused whatever it answers: a private address.
        await form(page, "webhooks", "https://127.0.0.1/hook");
        await page.getByText(/^whsec_/).waitFor();
        await page.getByRole("link", { name: "Done" }).click();
        await page.getByRole("button", { name: "Send a test" }).click();
        const row = page.getByRole("row", { name: /webhook\.test/ });
        await row.waitFor();
        await row.getByText("address refused").waitFor();
        await page.getByText("Change", { exact: true }).click();
        await page.getByLabel("Enabled").uncheck();
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByText("Saved.").waitFor();
        await row.getByRole("button", { name: "Send again" }).click();
        await page.getByRole("alert").getByText("enable it first").waitFor();
        expect(await page.getByText(/^whsec_/).count()).toBe(0);
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("button", { name: "Delete: really?" }).click();
        await page.getByText("No webhooks").waitFor();
      },
      refused(409),
    );
  });

  // Shows: docs/console.md#what-is-promised: recipients of e-mail: created
  test("a recipient of e-mail is created, and another code is refused", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await form(page, "email-recipients", `console-${Date.now().toString(36)}@example.com`);
        await page.getByLabel("Code from the mail").fill("2222-2222");
        await page.getByRole("button", { name: "Confirm", exact: true }).click();
        await page.getByRole("alert").getByText("not the code").waitFor();
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("button", { name: "Delete: really?" }).click();
        await page.getByText("No recipients of e-mail").waitFor();
      },
      refused(409),
    );
  });
});

// Shows: docs/console.md#what-is-promised: instances: how many, and by what
test.concurrent("the number of instances is changed, and autoscaling refused where the plan has none", async () => {
  await look(
    there,
    "desk",
    async (page) => {
      await signIn({ ...there, key: there.notifier }, page, at(there.free.id));
      const change = async (instances: string) => {
        await page.getByText("Change the instances").click();
        await page.getByLabel("Instances at the least").fill(instances);
        await page.getByRole("button", { name: "Save" }).click();
        await page.locator("details[open]").waitFor({ state: "detached" });
      };
      const least = page.locator("dl > div").filter({ hasText: "At the least" });
      await change("2");
      await page.getByText("Saved.").waitFor();
      await least.getByText("2", { exact: true }).waitFor();
      await change("1");
      // The form has what was saved, however soon it is opened.
      await page.getByText("Change the instances").click();
      expect(await page.getByLabel("Instances at the least").inputValue()).toBe("1");
      await least.getByText("1", { exact: true }).waitFor();
      await page.getByLabel("More by their load").check();
      await page.getByLabel("Instances at the most").fill("2");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("alert").getByText("has no autoscaling").waitFor();
    },
    refused(403),
  );
});

// Shows: docs/console.md#what-is-promised: alerts: which of them fire
test.concurrent("alerts of a project are added, changed and removed", async () => {
  await look(there, "desk", async (page) => {
    await signIn({ ...there, key: there.notifier }, page, at(there.shop.id, "alerts"));
    await page.getByText("No alerts").waitFor();
    const save = async () => {
      await page.getByRole("button", { name: "Save" }).click();
      await page.locator("details[open]").waitFor({ state: "detached" });
      await page.getByText("Saved.").waitFor();
    };
    const rule = page.getByRole("group", { name: "Rule" });
    await page.getByText("Change", { exact: true }).click();
    await page.getByRole("button", { name: "Add a rule" }).click();
    await rule.getByLabel("Watches").selectOption("memory");
    await rule.getByLabel("Name").fill("short-of-memory");
    await rule.getByLabel("From percent").fill("100");
    await save();
    const row = page.getByRole("row", { name: /short-of-memory/ });
    await row.getByText("100 %").waitFor();
    expect(await row.innerText()).toMatch(/memory[\s\S]*300 s/);
    await page.getByText("Change", { exact: true }).click();
    await rule.getByLabel("From percent").fill("99");
    await page.getByRole("button", { name: "Add a rule" }).click();
    await rule.nth(1).getByLabel("Watches").selectOption("failed_deployment");
    expect(await rule.nth(1).getByLabel("From percent").isDisabled()).toBe(true);
    await save();
    await row.getByText("99 %").waitFor();
    const failed = page.getByRole("row", { name: /failed_deployment/ });
    // The project's deployment has succeeded.
    await failed.getByText("ok", { exact: true }).waitFor({ timeout: 120_000 });
    await page.getByText("Change", { exact: true }).click();
    await rule.first().getByRole("button", { name: "Remove" }).click();
    await rule.first().getByRole("button", { name: "Remove" }).click();
    await save();
    await page.getByText("No alerts").waitFor();
  });
});

describe.concurrent("a project", () => {
  // Shows: docs/console.md#what-is-promised: projects are found by name, type and status; text from
  test("is found, described as it is, and nothing that it says becomes markup", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await signIn(there, page);
        await page.getByLabel("Type").selectOption("http");
        await page.getByLabel("Search").fill("shop");
        const row = page.getByRole("row", { name: /the-shop-front/ });
        await row.waitFor();
        await eventually(async () => expect(await page.getByRole("row").count()).toBe(2));
        expect(await row.innerText()).toMatch(/running[\s\S]*http[\s\S]*basic/);
        await page.getByLabel("Search").fill("nothing is called this");
        await page.getByText("No project is like that").waitFor();
        await page.getByRole("link", { name: "Show all projects" }).click();
        await page.getByRole("link", { name: "the-shop-front" }).click();
        await page.getByText(CANARY, { exact: true }).waitFor();
        await page.getByRole("row", { name: /succeeded/ }).waitFor();
        // No text becomes markup, also where a view forgets to escape it.
        await expect(page.evaluate(`document.body.insertAdjacentHTML("beforeend", "<b>")`)).rejects.toThrow(
          "TrustedHTML",
        );
      },
      /TrustedHTML|require-trusted-types-for/,
    );
  });

  // Shows: docs/console.md#what-is-promised: logs as they are written
  test("shows its log as it is written", async () => {
    await look(there, "desk", async (page) => {
      const followed = page.waitForRequest((request) => request.url().includes("/logs?follow=true"));
      await signIn(there, page, at(there.shop.id, "logs"));
      await followed;
      const log = page.getByRole("log");
      await log.getByText("listening on").waitFor();
      await throughIngress(there.shop.domain, "/written/meanwhile");
      await log.getByText("/written/meanwhile").waitFor();
      await page.getByLabel("Only lines with this text").fill("meanwhile");
      expect(await log.getByRole("listitem").filter({ visible: true }).count()).toBe(1);
    });
  });

  // Shows: docs/console.md#what-is-promised: logs that stay, of one instance and of a chosen time
  test("finds lines of one instance, and of a chosen time", async () => {
    const search = async (page: Page) => {
      await signIn(there, page, at(there.shop.id, "logs", "search"));
      const lines = page.getByRole("table", { name: "Lines found" });
      await lines.getByText("listening on").first().waitFor();
      await lines.getByRole("link").first().click();
      await page.getByText("Only lines of").waitFor();
      await lines.getByText("listening on").first().waitFor();
      await page.getByRole("link", { name: "All instances" }).click();
      await page.getByText("Only lines of").waitFor({ state: "detached" });
      // Before the project was made, in any time zone.
      const before = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 19);
      await page.getByLabel("To", { exact: true }).fill(before);
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByText("No lines found").waitFor();
    };
    // A search waits 5 s for the one before of its organization: on a busy machine it is refused, and the page repeats it.
    await look(there, "desk", search, refused(503));
  });

  // Shows: docs/console.md#what-is-promised: a plan without metrics, and projects that do not exist
  test("that is not there, or not of this key, is said to be so", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await signIn(there, page, at("pnone"));
        await page.getByRole("alert").getByText("Project not found.").waitFor();
        await page.evaluate("location.hash = '#/nowhere'");
        await page.getByText("There is nothing here").waitFor();
      },
      refused(404),
    );
  });
});

// Shows: docs/console.md#what-is-promised: runs with their cost, and the log of one
test.concurrent("the runs of a job are listed with their cost, and one with its log", async () => {
  await look(there, "desk", async (page) => {
    await signIn(there, page, at(there.job.id, "runs"));
    const cost = "R$0.0002";
    await page
      .getByRole("row", { name: /succeeded/ })
      .getByText(cost)
      .waitFor();
    await page.getByRole("definition").getByText(cost).waitFor();
    await page
      .getByRole("row", { name: /succeeded/ })
      .getByRole("link")
      .click();
    await page.getByRole("log").getByText(CANARY, { exact: true }).waitFor();
    await page.getByRole("status").getByText("Ended").waitFor();
  });
});

// Shows: docs/console.md#what-is-promised: what the organization was charged, with a forecast, by project
test.concurrent("the costs of the organization are those of its projects, and lead to them", async () => {
  await look(there, "desk", async (page) => {
    await signIn(there, page, "#/");
    await page.getByRole("link", { name: "Costs" }).click();
    await heading(page, "Costs").waitFor();
    await page.getByRole("term").getByText("Forecast").waitFor();
    const cycles = page.getByRole("combobox", { name: "Billing cycle" });
    await cycles.selectOption({ index: 11 });
    await page.getByText("Nothing was charged in this billing cycle").waitFor();
    // That in which the run started: a month may have begun since.
    const names = await cycles.locator("option").allTextContents();
    const own = names.findIndex((name) => name.startsWith(there.job.started.slice(0, 7)));
    await cycles.selectOption({ index: own });
    const row = page.getByRole("row", { name: /nightly-report/ });
    await row.getByText("job run").waitFor();
    await row.getByText("R$0.0002").waitFor();
    await row.getByRole("link").click();
    await heading(page, "nightly-report").waitFor();
  });
});

// Shows: docs/console.md#what-is-promised: invoices: their amounts, lines, payments and credit notes
// Shows: docs/console.md#what-is-promised: no script runs in an invoice
test.concurrent("an invoice is shown with what belongs to it, stored as CSV, and printed without scripts", async () => {
  const work = async (page: Page) => {
    await signIn(there, page, "#/costs");
    const row = page.getByRole("row", { name: there.invoice });
    await row.getByText("open").waitFor();
    // 710 cents and 21 of a tax, without 100 that were paid and 10 that were credited.
    expect(await row.innerText()).toMatch(/R\$7\.31[\s\S]*R\$6\.21/);
    await row.getByRole("link").click();
    await heading(page, `Invoice ${there.invoice}`).waitFor();
    // With all nine decimals of a cent.
    await page.getByRole("cell", { name: "R$2.36123456789" }).waitFor();
    await page.getByRole("row", { name: /transfer-1.*R\$1\.00/ }).waitFor();
    await page.getByRole("row", { name: /^CN-/ }).getByText(CANARY, { exact: true }).waitFor();
    const downloaded = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download as CSV" }).click();
    const file = await downloaded;
    expect(file.suggestedFilename()).toBe(`invoice-${there.invoice}.csv`);
    expect(await readFile(await file.path(), "utf8")).toContain(",236.123456789,708.370370367,brl,3,");
    await page.getByRole("button", { name: "Show to print" }).click();
    await page.frameLocator("iframe").getByText(CANARY).first().waitFor();
    expect(await page.locator("iframe").getAttribute("sandbox")).toBe("allow-same-origin allow-modals");
    const inFrame = (expression: string) =>
      page.evaluate(`((frame) => ${expression})(document.querySelector("iframe"))`);
    // Both policies name its style.
    const style = `getComputedStyle(frame.contentDocument.querySelector("header")).display`;
    expect(await inFrame(style)).toBe("flex");
    await inFrame(`frame.contentWindow.addEventListener("beforeprint", () => { window.isPrinted = true; })`);
    await page.getByRole("button", { name: "Print", exact: true }).click();
    await eventually(async () => expect(await page.evaluate("window.isPrinted")).toBe(true));
    // Whatever a document has.
    const ran = await inFrame(`new Promise((resolve) => {
      frame.addEventListener("load", () => resolve(window.hasRun === true), { once: true });
      const script = "<script>parent.hasRun = true</" + "script>";
      frame.src = URL.createObjectURL(new Blob([script], { type: "text/html" }));
    })`);
    expect(ran).toBe(false);
  };
  await look(there, "desk", work, /Blocked script execution/);
});

describe.concurrent("a budget", () => {
  // Shows: docs/console.md#what-is-promised: the budget: what is spent of it; set, changed and removed
  test("is set, refused out of its bounds, changed and removed", async () => {
    const { api_key } = await createOrganization("console-budget");
    await look(
      { ...there, key: { api_key, api_key_id: "" } },
      "desk",
      async (page) => {
        await signIn({ ...there, key: { api_key, api_key_id: "" } }, page, "#/costs");
        const fill = async (amount: string, notices: string) => {
          await page.getByLabel("Budget of a billing cycle, R$").fill(amount);
          await page.getByLabel("Notices at percent").fill(notices);
          await page.getByRole("button", { name: "Save" }).click();
        };
        await page.getByText("Set a budget").click();
        await fill("50.5", "1001");
        await page.getByRole("alert").getByText("A budget is more than R$0").waitFor();
        await page.getByLabel("Hard cap").check();
        await fill("50.5", "80 100");
        await page.getByText("Saved.").waitFor();
        const bar = page.getByRole("progressbar", { name: "Spent" });
        expect(await bar.getAttribute("aria-valuetext")).toBe("R$0.00 of R$50.50 spent, 0 %");
        expect(await page.evaluate("document.activeElement.textContent")).toBe("Change the budget");
        await page.getByText("Change the budget").click();
        expect(await page.getByLabel("Hard cap").isChecked()).toBe(true);
        await fill("1000", "90");
        await page.getByText("R$0.00 of R$1,000.00 spent, 0 %").waitFor();
        await page.getByText("90 %", { exact: true }).waitFor();
        await page.getByText("Change the budget").click();
        await page.getByRole("button", { name: "Remove the budget" }).click();
        await page.getByRole("button", { name: "Remove the budget: really?" }).click();
        await page.getByText("There is no budget").waitFor();
      },
      /status of (400|404) /,
    );
  });

  // Shows: docs/console.md#what-is-promised: the budget: what is spent of it; set, changed and removed
  test("that was removed meanwhile is not set again, and its form is that of a first one", async () => {
    const { api_key } = await createOrganization("console-budget");
    const signedIn = { ...there, key: { api_key, api_key_id: "" } };
    const call = apiClient(api_key);
    const path = "/v1/organization/budget";
    await eventually(async () =>
      expect(await call("PUT", path, { amount: "150000" })).toMatchObject({ status: 200 }),
    );
    await look(
      signedIn,
      "desk",
      async (page) => {
        await signIn(signedIn, page, "#/costs");
        await page.getByText("Change the budget").click();
        expect(await call("DELETE", path)).toMatchObject({ status: 200 });
        await page.getByLabel("Budget of a billing cycle, R$").fill("1.500");
        await page.getByText("= R$1.50", { exact: true }).waitFor();
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByText("The budget was removed meanwhile: nothing is saved.").waitFor();
        await page.getByText("Set a budget").click();
        expect(await page.getByLabel("Budget of a billing cycle, R$").inputValue()).toBe("");
      },
      refused(404),
    );
  });

  // Shows: docs/console.md#what-is-promised: the budget: what is spent of it; set, changed and removed
  test("is not changed by a key that may only read it, and it says why", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await signIn(there, page, "#/costs");
        await page.getByText("Change the budget").click();
        await page.getByLabel("Budget of a billing cycle, R$").fill("1");
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByRole("alert").getByText("organization.budget.update on organization:*").waitFor();
      },
      refused(403),
    );
  });
});

// Shows: docs/console.md#what-is-promised: builds, and the log of one
test.concurrent("a failed build is listed with its reason, and shown with its log", async () => {
  await look(there, "desk", async (page) => {
    await signIn(there, page, at(there.built.id, "builds"));
    await page
      .getByRole("row", { name: /failed/ })
      .getByText("NPM_LOCKFILE_REQUIRED")
      .waitFor();
    await page
      .getByRole("row", { name: /failed/ })
      .getByRole("link")
      .click();
    await page.getByRole("log").getByText("lock").first().waitFor();
    await page.getByRole("status").getByText("Ended").waitFor();
  });
});

describe.concurrent("plots", () => {
  // Shows: docs/console.md#what-is-promised: every request in the plots, by code and route
  test("show every request of a project, by code", async () => {
    await look(there, "desk", async (page) => {
      await signIn(there, page, at(there.shop.id, "traffic"));
      const requests = page.getByRole("figure").filter({ hasText: "Requests" });
      await requests.getByText("Show as a table").click();
      await eventually(async () => {
        const cells = await requests.locator('td[data-name="2xx"]').allInnerTexts();
        const total = cells.reduce((sum, cell) => sum + Number(cell), 0);
        // The test of the log may have sent one more.
        expect([REQUESTS, REQUESTS + 1]).toContain(total);
      });
      await page.getByRole("row", { name: /\/some\/where/ }).waitFor();
      await page.getByLabel("By").selectOption("status-codes");
      await page.getByRole("row", { name: /^200/ }).waitFor();
      await requests.getByRole("img").press("End");
      expect(await requests.locator(".readout").innerText()).toContain("2xx");
    });
  });

  // Shows: docs/console.md#what-is-promised: CPU, memory and network of an instance, from the past on
  test("show what an instance uses, from before the page was opened", async () => {
    await look(there, "desk", async (page) => {
      await signIn(there, page, at(there.shop.id, "usage"));
      await page.getByRole("definition").getByText("MiB").waitFor();
      await page.getByText("The plots are of the last 1 hour").waitFor();
      for (const title of ["CPU", "Memory", "Network"]) {
        // A rate needs two samples, 30 s apart, and the history is read once a minute.
        await page.getByRole("figure").filter({ hasText: title }).first().waitFor({ timeout: 240_000 });
      }
      await page.getByRole("link", { name: "8 days" }).click();
      await page.getByText("The plots are of the last 8 days").waitFor();
    });
  });

  // Shows: docs/console.md#what-is-promised: a plan without metrics, and projects that do not exist
  test("are not there on a plan without metrics, and it says so", async () => {
    await look(
      there,
      "desk",
      async (page) => {
        await signIn(there, page, at(there.free.id, "traffic"));
        await page.getByText("This plan does not include this").first().waitFor();
      },
      refused(402),
    );
  });
});

// Shows: docs/console.md#what-is-promised: no console errors, no policy violations, no requests to other
test.concurrent.each(Object.keys(looks) as Look[])("every view fits, %s", async (by) => {
  await look(there, by, async (page) => {
    const fits = async (name: string) => {
      await eventually(async () => expect(await page.locator(".loading").count()).toBe(0));
      await pictures(page, name, by);
      const wider = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      expect([name, wider]).toEqual([name, 0]);
    };
    await page.goto(`${there.browser.url}/console`);
    await page.getByLabel("API key").waitFor();
    await fits("sign-in");
    await signIn(there, page);
    const views: Record<string, [hash: string, sign: string | RegExp]> = {
      projects: ["#/", "the-shop-front"],
      overview: [at(there.shop.id), CANARY],
      traffic: [at(there.shop.id, "traffic"), "/some/where"],
      usage: [at(there.shop.id, "usage"), "Memory now"],
      logs: [at(there.shop.id, "logs"), "listening on"],
      "log-search": [at(there.shop.id, "logs", "search"), "listening on"],
      runs: [at(there.job.id, "runs"), "by hand"],
      run: [at(there.job.id, "runs", there.job.run), "Ended"],
      costs: ["#/costs", there.invoice],
      invoice: [`#/costs/invoices/${there.invoice}`, "Credit notes"],
      builds: [at(there.built.id, "builds"), "NPM_LOCKFILE_REQUIRED"],
      build: [at(there.built.id, "builds", there.built.build), "Ended"],
      alerts: [at(there.job.id, "alerts"), "No alerts"],
    };
    for (const [name, [hash, sign]] of Object.entries(views)) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator("main").getByText(sign).first().waitFor();
      await fits(name);
    }
  });
});

// Shows: docs/console.md#what-is-promised: after a key is revoked, the page asks for another
test("a revoked key is requested again", async () => {
  await look(
    there,
    "desk",
    async (page) => {
      await signIn(there, page);
      await admin("api-key", "revoke", "--id", there.key.api_key_id);
      await page.getByRole("alert").getByText("This API key is not accepted any more.").waitFor();
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
    },
    refused(401),
  );
});
