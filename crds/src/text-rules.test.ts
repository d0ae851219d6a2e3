import { isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { almostCidr } from "../../test/kit/crds/arbitraries.ts";
import { compareDecimal, equalDecimal, formatDecimal, parseDecimal, timesDecimal } from "./billing.ts";
import { isCidr } from "./cidr.ts";
import {
  absolutePath,
  CONTEXT_PATH,
  hostname,
  imageUrl,
  normalizeContextPath,
  text,
  timestamp,
} from "./fields.ts";

describe("isCidr", () => {
  it("accepts addresses of either family with a prefix", () => {
    const prefixed = (addresses: fc.Arbitrary<string>, most: number) =>
      fc.tuple(addresses, fc.integer({ min: 0, max: most })).map((parts) => parts.join("/"));
    fc.assert(fc.property(prefixed(fc.ipV4(), 32), (cidr) => isCidr(cidr)));
    fc.assert(
      fc.property(prefixed(fc.ipV6(), 128), (cidr) => isCidr(cidr) || /^(::|(0{1,4}:){5})f{4}:/i.test(cidr)),
    );
  });

  it("accepts nothing whose address Node cannot read", () => {
    fc.assert(
      fc.property(almostCidr, (cidr) => {
        if (isCidr(cidr)) {
          expect(isIP(cidr.slice(0, cidr.lastIndexOf("/")))).not.toBe(0);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe("context paths", () => {
  it.each([
    ["", "."],
    [" ./ ", "."],
    ["./apps/web/", "apps/web"],
    ["apps", "apps"],
    [".", "."],
  ])("%j becomes %j", (given, wanted) => expect(normalizeContextPath(given)).toBe(wanted));

  it("never leave the repository once they are accepted", () => {
    const part = fc.constantFrom("..", ".", "", "a", ".b", "..c", "c..", "\\", "\n", "é");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const path = normalizeContextPath(parts.join("/"));
        if (!CONTEXT_PATH.test(path) || path === ".") {
          return;
        }
        for (const segment of path.split("/")) {
          expect(["", ".", ".."]).not.toContain(segment);
        }
        expect(path).not.toMatch(/[\\\p{Cc}]/u);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("decimals", () => {
  const digits = fc.bigInt({ min: 0n, max: 10n ** 17n });
  const decimals = fc
    .tuple(digits, fc.integer({ min: 0, max: 18 }))
    .map(([units, scale]) => ({ units, scale }));

  it("come back from their text as the same amount", () => {
    fc.assert(fc.property(decimals, (one) => equalDecimal(parseDecimal(formatDecimal(one)), one)));
  });

  it("multiply exactly", () => {
    expect(formatDecimal(timesDecimal(parseDecimal("0.1"), 3n))).toBe("0.3");
    expect(formatDecimal(timesDecimal(parseDecimal("0.02"), 60n))).toBe("1.2");
  });

  it("compare by amount", () => {
    expect(compareDecimal(parseDecimal("1.50"), parseDecimal("1.5"))).toBe(0);
    expect(compareDecimal(parseDecimal("0.3"), parseDecimal("0.29"))).toBeGreaterThan(0);
  });

  it.each(["", "-1", "1.", ".5", "1e3", "1,5", "NaN"])("refuse %j", (given) => {
    expect(() => parseDecimal(given)).toThrow(RangeError);
  });
});

describe("field schemas", () => {
  it("count characters as the apiserver does", () => {
    const four = text(1, 4, "Four characters.");
    expect(four.safeParse("😀😀😀😀").success).toBe(true);
    expect(four.safeParse("😀😀😀😀😀").success).toBe(false);
    expect(four.safeParse("").success).toBe(false);
  });

  it.each(["2026-02-28T00:00:00Z", "2024-02-29T23:59:59.123456789Z"])("take %s as a moment", (moment) => {
    expect(timestamp("When.").safeParse(moment).success).toBe(true);
  });

  it.each(["2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01"])(
    "refuse %s",
    (moment) => {
      expect(timestamp("When.").safeParse(moment).success).toBe(false);
    },
  );

  it.each([
    "nginx:latest",
    "docker.io/library/nginx",
    "10.244.0.1:5000/slipway/sample-http:1",
    "localhost:5000/a/b__c/d-e.f:V1.2_3-x",
    `registry.example.com/app:1@sha256:${"a".repeat(64)}`,
  ])("take the image %s", (image) => expect(imageUrl.safeParse(image).success).toBe(true));

  it.each([
    "http://nginx",
    "https://nginx/x",
    "nginx:",
    "nginx latest",
    "a.example/App",
    "a.example//b",
    "a.example/b@sha256:abc",
    "-nginx-x",
  ])("refuse the image %s", (image) => expect(imageUrl.safeParse(image).success).toBe(false));

  it.each([
    "localhost",
    "a..b",
    "a_b.example",
    ".example.com",
    "1.2.3.4",
    `${"a".repeat(64)}.com`,
    `${"a.".repeat(126)}com`,
  ])("refuse the hostname %s", (name) => expect(hostname("A name.").safeParse(name).success).toBe(false));

  it("take absolute paths only", () => {
    expect(absolutePath.safeParse("/var/lib/app").success).toBe(true);
    expect(absolutePath.safeParse("var/lib").success).toBe(false);
  });
});
