import { describe, expect, test } from "vitest";
import { outsideWorld } from "./cidrs.ts";

describe("outsideWorld", () => {
  test("closes metadata and private IPv6 ranges even when nothing is configured", () => {
    expect(outsideWorld([])).toEqual([
      { cidr: "0.0.0.0/0", except: ["169.254.0.0/16"] },
      { cidr: "::/0", except: ["fc00::/7", "fe80::/10"] },
    ]);
  });

  test("puts each configured range under its own address family", () => {
    expect(outsideWorld(["10.244.0.0/24", "2001:db8::/32"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.244.0.0/24", "169.254.0.0/16"] },
      { cidr: "::/0", except: ["2001:db8::/32", "fc00::/7", "fe80::/10"] },
    ]);
  });

  test("drops ranges that lie inside another one", () => {
    expect(outsideWorld(["10.0.0.0/8", "10.96.0.0/16", "fd00:1::/64"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.0.0.0/8", "169.254.0.0/16"] },
      { cidr: "::/0", except: ["fc00::/7", "fe80::/10"] },
    ]);
  });

  test("gives no block at all for a family that is denied as a whole", () => {
    expect(outsideWorld(["::/0"]).map(({ cidr }) => cidr)).toEqual(["0.0.0.0/0"]);
  });

  test("does not depend on the order or repetition of its input", () => {
    expect(outsideWorld(["10.1.0.0/16", "10.0.0.0/16", "10.1.0.0/16"])).toEqual(
      outsideWorld(["10.0.0.0/16", "10.1.0.0/16"]),
    );
  });
});
