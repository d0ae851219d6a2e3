import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { classify, createIngressProbe } from "./ingress-probe.ts";

describe("classify", () => {
  test.each([
    ["an application's page", 200, "hello", "serving"],
    ["an application's own failure", 500, "oops", "serving"],
    ["an application's own 404", 404, '{"error":"not found"}', "serving"],
    ["a host that Traefik does not know", 404, "404 page not found\n", "unknown-host"],
    [
      "a host that nginx does not know",
      404,
      "<html>\r\n<head><title>404 Not Found</title></head>",
      "unknown-host",
    ],
    ["a route that Traefik does not admit us to", 403, "Forbidden", "refused"],
    ["one that nginx does not", 403, "<html>\r\n<head><title>403 Forbidden</title></head>", "refused"],
    ["an application that wants a login", 403, "please log in", "serving"],
    ["a route without an instance", 503, "no available server\n", "no-instance"],
    ["an instance that refuses", 502, "Bad Gateway", "no-instance"],
    ["an application in maintenance", 503, "back soon", "serving"],
    ["an instance that does not answer", 504, "Gateway Timeout", "no-instance"],
  ])("classifies %s", (_, status, body, expected) => {
    expect(classify(status, body)).toBe(expected);
  });
});

describe("createIngressProbe", () => {
  const server = http.createServer((request, response) => {
    if (request.headers.host === "known.example") {
      response.end("x".repeat(100_000));
    } else if (request.headers.host !== "silent.example") {
      response.writeHead(404).end("404 page not found\n");
    }
  });
  let url: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("sends the host that it probes", async () => {
    const probe = createIngressProbe(url);
    await expect(probe("known.example")).resolves.toBe("serving");
    await expect(probe("unknown.example")).resolves.toBe("unknown-host");
  });

  test("distinguishes an unreachable ingress from one that waits for an answer", async () => {
    await expect(createIngressProbe("http://127.0.0.1:9")("known.example")).resolves.toBe("unreachable");
    await expect(createIngressProbe(url, 50)("silent.example")).resolves.toBe("silent");
  });
});
