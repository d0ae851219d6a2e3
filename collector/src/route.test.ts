import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_ROUTE_BYTES, MAX_ROUTE_SEGMENTS, MAX_SEGMENT_BYTES, routeOf } from "./route.ts";

const tooLong = `/files/${"x".repeat(MAX_SEGMENT_BYTES + 1)}`;
const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

describe("what names single things is replaced", () => {
  test.each([
    ["/", "/"],
    ["", "/"],
    ["*", "/*"],
    ["/users", "/users"],
    ["/users/", "/users"],
    ["//users///all", "/users/all"],
    ["/users/42", "/users/:number"],
    ["/users/-42.5", "/users/:number"],
    ["/users/42/orders/7?sort=up#top", "/users/:number/orders/:number"],
    ["/users?id=42", "/users"],
    ["/users/8c0e6a3e-5a4f-4c8e-9b0a-5b0a6a3e5a4f", "/users/:uuid"],
    ["/users/8C0E6A3E-5A4F-4C8E-9B0A-5B0A6A3E5A4F.json", "/users/:uuid.json"],
    ["/commits/9f86d08", "/commits/:hash"],
    [`/blobs/${hash}`, "/blobs/:hash"],
    [`/blobs/sha256:${hash}`, "/blobs/sha:number::hash"],
    ["/objects/507f1f77bcf86cd799439011", "/objects/:hash"],
    ["/events/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/events/:id"],
    ["/projects/p4k2m9x7q1w8e5r3t6y0", "/projects/:id"],
    ["/watch/dQw4w9WgXcQ", "/watch/:id"],
    ["/s/Xy_9-aB3dE-Qr7_tUv2wZ4", "/s/:id"],
    ["/days/2026-11-22", "/days/:date"],
    ["/days/2026-11-22T04:42:01.682Z/hours", "/days/:date/hours"],
    ["/orders/order-123456.json", "/orders/order-:number.json"],
    ["/orders/INV2026", "/orders/INV:number"],
    ["/users/ada%40example.org", "/users/:email"],
    ["/users/ada@example.org/mail", "/users/:email/mail"],
    ["/assets/main-3f2a9c1b.css", "/assets/main-:hash.css"],
    ["/a/%ff%fe", "/a/:encoded"],
    ["/a/%00", "/a/:encoded"],
    ["/a/caf%c3%a9", "/a/caf%C3%A9"],
    ["/a/%zz", "/a/:encoded"],
    [tooLong, "/files/:long"],
    ["/1/2/3/4/5/6/7/8", "/:number".repeat(8)],
    ["/1/2/3/4/5/6/7/8/9", `${"/:number".repeat(7)}/*`],
  ])("%s → %s", (path, route) => {
    expect(routeOf(path)).toBe(route);
  });
});

test("words stay what they are", () => {
  const words = [
    "v1",
    "api",
    "login",
    "oauth2",
    "oauth2callback",
    "utf-8",
    "h264",
    "mp3",
    "a-b_c",
    "index.html",
  ];
  const more = ["My-Blog-Post-Of-Today", "facade", "decade", ".well-known", "robots.txt", "@me", "top-10"];
  for (const word of [...words, ...more]) {
    expect(routeOf(`/${word}`)).toBe(`/${word}`);
  }
});

const segment = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.uuid(),
  fc.nat().map(String),
  fc.stringMatching(/^[A-Za-z0-9_%.:-]{0,60}$/),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);
const path = fc.array(segment, { maxLength: 20 }).map((segments) => `/${segments.join("/")}`);

describe("properties", () => {
  test("a route is bounded, printable, and its own route", () => {
    fc.assert(
      fc.property(path, (path) => {
        const route = routeOf(path);
        expect(route.startsWith("/")).toBe(true);
        expect(Buffer.byteLength(route)).toBeLessThanOrEqual(MAX_ROUTE_BYTES);
        expect(route.split("/").length - 1).toBeLessThanOrEqual(MAX_ROUTE_SEGMENTS);
        expect(route).not.toMatch(/[\p{Cc}?#]/u);
        expect(route.isWellFormed()).toBe(true);
        expect(routeOf(route)).toBe(route);
      }),
      { numRuns: 2_000 },
    );
  });

  test("paths that differ in an id alone have one route", () => {
    const ids = fc.oneof(fc.uuid(), fc.nat().map(String), fc.stringMatching(/^[0-9a-f]{40}$/));
    const routes = (make: (id: string) => string, values: string[]) =>
      new Set(values.map((id) => routeOf(make(id))));
    fc.assert(
      fc.property(fc.array(ids, { minLength: 1, maxLength: 50 }), (values) => {
        const found = routes((id) => `/v1/things/${id}/parts`, values);
        for (const route of found) {
          expect(route).toMatch(/^\/v1\/things\/:(uuid|number|hash)\/parts$/);
        }
      }),
    );
  });

  test("an address of mail is what one `@` and a dot inside of what follows make", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "@", ".", ":"), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(text, (segment) => {
        expect(routeOf(`/${segment}`) === "/:email").toBe(/^[^@:]+@[^@:]+\.[^@:]+$/.test(segment));
      }),
      { numRuns: 2_000 },
    );
  });

  test("segments that are almost addresses of mail cost no more than others", () => {
    const almost = `/a@${".".repeat(1_000)}@`.repeat(7);
    // Of the processor, in microseconds: a busy machine takes longer.
    const before = process.threadCpuUsage();
    for (let times = 0; times < 200; times += 1) {
      routeOf(almost);
    }
    expect(process.threadCpuUsage(before).user).toBeLessThan(500_000);
  });

  test("a hostile path costs no more than it is long", () => {
    const hostile = [
      `/${"a".repeat(1_000_000)}`,
      "/a".repeat(500_000),
      `/${"1-".repeat(500)}`,
      `/${"%41".repeat(300)}`,
    ];
    const started = performance.now();
    for (const path of hostile) {
      routeOf(path);
    }
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
