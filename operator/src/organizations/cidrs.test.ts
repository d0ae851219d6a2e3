import { describe, expect, test } from "vitest";
import { subtractCidrs } from "../net/cidr.ts";
import { outsideWorld } from "./cidrs.ts";

const ALWAYS_4 = ["100.64.0.0/10", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.0/24"];
const ALWAYS_6 = ["64:ff9b::/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10"];

test.each([
  ["EC2, Google Cloud, Azure, DigitalOcean", "169.254.169.254"],
  ["EC2 over IPv6", "fd00:ec2::254"],
  ["Alibaba Cloud", "100.100.100.200"],
  ["Azure's host agent", "168.63.129.16"],
  ["Oracle Cloud", "192.0.0.192"],
  ["nodes behind a carrier's translator", "100.127.255.254"],
  ["EC2's metadata through NAT64", "64:ff9b::a9fe:a9fe"],
])("%s is never in the outside world", (_, address) => {
  const single = `${address}/${address.includes(":") ? 128 : 32}`;
  const except = outsideWorld([]).flatMap((block) => block.except ?? []);
  expect(subtractCidrs([single], except)).toEqual([]);
});

describe("outsideWorld", () => {
  test("closes metadata and private IPv6 ranges even when nothing is configured", () => {
    expect(outsideWorld([])).toEqual([
      { cidr: "0.0.0.0/0", except: ALWAYS_4 },
      { cidr: "::/0", except: ALWAYS_6 },
    ]);
  });

  test("puts each configured range under its own address family", () => {
    expect(outsideWorld(["10.244.0.0/24", "2001:db8::/32"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.244.0.0/24", ...ALWAYS_4] },
      { cidr: "::/0", except: ["64:ff9b::/96", "64:ff9b:1::/48", "2001:db8::/32", "fc00::/7", "fe80::/10"] },
    ]);
  });

  test("drops ranges that lie inside another one", () => {
    expect(outsideWorld(["10.0.0.0/8", "10.96.0.0/16", "fd00:1::/64"])).toEqual([
      { cidr: "0.0.0.0/0", except: ["10.0.0.0/8", ...ALWAYS_4] },
      { cidr: "::/0", except: ALWAYS_6 },
    ]);
  });

  test("returns no block for a family that is denied as a whole", () => {
    expect(outsideWorld(["::/0"]).map(({ cidr }) => cidr)).toEqual(["0.0.0.0/0"]);
  });

  test("does not depend on the order or repetition of its input", () => {
    expect(outsideWorld(["10.1.0.0/16", "10.0.0.0/16", "10.1.0.0/16"])).toEqual(
      outsideWorld(["10.0.0.0/16", "10.1.0.0/16"]),
    );
  });
});
