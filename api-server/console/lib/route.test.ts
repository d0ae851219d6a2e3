import { describe, expect, it } from "vitest";
import { link, parseRoute, withQuery } from "./route.ts";

describe("where one is", () => {
  it.each([
    ["", { view: "projects" }],
    ["#/", { view: "projects" }],
    ["#/projects?page=2", { view: "projects" }],
    ["#/project/p1", { view: "project", project: "p1", tab: "overview", item: undefined }],
    ["#/project/p1/runs/r1", { view: "project", project: "p1", tab: "runs", item: "r1" }],
    ["#/project/a%2Fb/logs", { view: "project", project: "a/b", tab: "logs" }],
    ["#/project/p1/alerts", { view: "project", project: "p1", tab: "alerts" }],
    ["#/project/%zz", { view: "project", project: "%zz" }],
    ["#/project", { view: "missing" }],
    ["#/costs?cycle=2026-11", { view: "costs", invoice: undefined }],
    ["#/costs/invoices/2026-000042", { view: "costs", invoice: "2026-000042" }],
    ["#/costs/invoices", { view: "missing" }],
    ["#/costs/invoices/2026-000042/more", { view: "missing" }],
    ["#/costs/other/2026-000042", { view: "missing" }],
    ["#/costs/p1", { view: "missing" }],
    ["#/notifications", { view: "notifications", kind: undefined, item: undefined }],
    ["#/notifications/webhooks/w1?page=2", { view: "notifications", kind: "webhooks", item: "w1" }],
    [
      "#/notifications/email-recipients/new",
      { view: "notifications", kind: "email-recipients", item: "new" },
    ],
    ["#/notifications/webhooks", { view: "missing" }],
    ["#/notifications/other/w1", { view: "missing" }],
    ["#/notifications/webhooks/w1/more", { view: "missing" }],
    ["#/project/p1/constructor", { view: "missing" }],
    ["#/project/p1/runs/r1/more", { view: "missing" }],
    ["#/elsewhere", { view: "missing" }],
    ["#javascript:alert(1)", { view: "missing" }],
  ])("by %j is %j", (hash, route) => {
    expect(parseRoute(hash)).toMatchObject(route);
  });

  it("is the same after a link to it", () => {
    for (const parts of [
      ["project", "p1", "builds", "b 1/2?#"],
      ["project", "ü&=", "traffic"],
    ]) {
      const route = parseRoute(link(parts, { q: "a&b=c #", none: undefined, empty: "" }));
      expect(route).toMatchObject({ project: parts[1], tab: parts[2], item: parts[3] });
      expect([...(route.view === "missing" ? [] : route.query)]).toEqual([["q", "a&b=c #"]]);
    }
  });

  it("keeps its parameters but for those that change", () => {
    const route = parseRoute("#/project/p1/traffic?range=300&page=2");
    expect(withQuery(route, { page: undefined, by: "routes" })).toBe(
      "#/project/p1/traffic?range=300&by=routes",
    );
    expect(withQuery(parseRoute("#/notifications/webhooks/w1?page=1"), { page: "2" })).toBe(
      "#/notifications/webhooks/w1?page=2",
    );
    expect(withQuery(parseRoute("#/costs?cycle=2026-11"), { page: "2" })).toBe(
      "#/costs?cycle=2026-11&page=2",
    );
    expect(withQuery(parseRoute("#/costs/invoices/2026-000042"), { page: "2" })).toBe(
      "#/costs/invoices/2026-000042?page=2",
    );
    expect(withQuery(parseRoute("#/nowhere"), { page: "2" })).toBe("#/");
  });
});
