import { silentLogger, systemClock } from "@slipway/process";
import { beforeEach, describe, expect, it } from "vitest";
import { addLine, serviceNames } from "./counters.ts";
import { LastRequests } from "./last-requests.ts";

const signal = new AbortController().signal;
const [own = "", activator = ""] = serviceNames("slipway-org-acme", "pshop", "pshop-activator");

let seconds: number;
let ingress: Map<string, Map<string, number> | undefined>;
let requests: LastRequests;

beforeEach(() => {
  seconds = 1_000;
  ingress = new Map([["10.0.0.1", new Map()]]);
  requests = new LastRequests({
    clock: { ...systemClock, monotonic: () => seconds * 1_000 },
    log: silentLogger,
    url: "http://traefik:9000/metrics",
    isWanted: () => true,
    addresses: async () => [...ingress.keys()],
    read: async (url) => {
      const counters = ingress.get(new URL(url).hostname);
      if (!counters) {
        throw new Error("refused");
      }
      return new Map(counters);
    },
  });
});

const readAt = (at: number) => {
  seconds = at;
  return requests.readOnce(signal);
};
const idle = () => requests.idleSeconds([own, activator]);

describe("seconds since the last request", () => {
  it("are unknown before the ingress was read, and counted from the first reading on", async () => {
    expect(idle()).toBeUndefined();
    await readAt(1_000);
    expect(idle()).toBe(0);
    await readAt(1_050);
    expect(idle()).toBe(50);
  });

  it("begin again with a request by either way, to any process of the ingress", async () => {
    ingress.set("10.0.0.2", new Map());
    await readAt(1_000);
    ingress.get("10.0.0.2")?.set(own, 1);
    await readAt(1_030);
    expect(idle()).toBe(0);
    await readAt(1_050);
    expect(idle()).toBe(20);
    ingress.get("10.0.0.1")?.set(activator, 7);
    await readAt(1_060);
    expect(idle()).toBe(0);
  });

  it("are those of others, too", async () => {
    await readAt(1_000);
    ingress.get("10.0.0.1")?.set("slipway-org-acme-pother-http", 1);
    await readAt(1_050);
    expect(idle()).toBe(50);
  });

  it("begin again when a process of the ingress has ended, or has begun with requests", async () => {
    await readAt(1_000);
    ingress.set("10.0.0.2", new Map([[own, 3]]));
    await readAt(1_050);
    expect(idle()).toBe(0);
    await readAt(1_059);
    expect(idle()).toBe(9);
    ingress.delete("10.0.0.1");
    await readAt(1_060);
    expect(idle()).toBe(0);
  });

  it("are unknown while the ingress is not read, and begin again afterwards", async () => {
    await readAt(1_000);
    ingress.set("10.0.0.2", undefined);
    await expect(readAt(1_030)).rejects.toThrow("refused");
    seconds = 1_061;
    expect(idle()).toBeUndefined();
    ingress.delete("10.0.0.2");
    await readAt(1_070);
    expect(idle()).toBe(0);
  });
});

describe("Traefik's page", () => {
  it("is added up over methods and codes, and what is not of a project is passed over", () => {
    const counters = new Map<string, number>();
    for (const line of [
      "# TYPE traefik_service_requests_total counter",
      `traefik_service_requests_total{code="200",method="GET",protocol="http",service="${own}@kubernetes"} 3`,
      `traefik_service_requests_total{code="404",method="GET",protocol="http",service="${own}@kubernetes"} 1e+06`,
      `traefik_service_request_duration_seconds_count{code="200",service="${own}@kubernetes"} 3`,
      'traefik_service_requests_total{code="200",method="GET",service="slipway-system-slipway-api-server-http@kubernetes"} 9',
    ]) {
      addLine(counters, line);
    }
    expect([...counters]).toEqual([[own, 1_000_003]]);
  });

  it("has names with one dash where Kubernetes' have several", () => {
    expect(serviceNames("slipway-org-a--b", "p1")).toEqual(["slipway-org-a-b-p1-http"]);
  });
});
