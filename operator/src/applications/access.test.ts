import { expect, test } from "vitest";
import { parseCidr } from "../net/cidr.ts";
import { admittedCidrs } from "./access.ts";

const list = (...cidrs: string[]) => cidrs.map((cidr) => ({ cidr }));
const admitted = (white: string[], black: string[] = []) =>
  admittedCidrs({ ingressWhiteList: list(...white), ingressBlackList: list(...black) });

test("without lists, or with an open one, everybody is admitted", () => {
  expect(admittedCidrs(undefined)).toBeUndefined();
  expect(admitted(["192.0.2.0/24", "0.0.0.0/0"])).toBeUndefined();
});

test.each<[string, string[], string[], string[]]>([
  ["a white list alone", ["192.0.2.0/24", "2001:db8::/32"], [], ["192.0.2.0/24", "2001:db8::/32"]],
  ["a hole in it", ["192.0.2.0/24"], ["192.0.2.128/25"], ["192.0.2.0/25"]],
  ["a hole of the other family", ["192.0.2.0/24"], ["2001:db8::/32"], ["192.0.2.0/24"]],
  ["IPv6 alone", ["::/0"], ["8000::/1"], ["::/1"]],
  ["everybody by IPv4 means by IPv6 too", ["0.0.0.0/0"], ["128.0.0.0/1"], ["0.0.0.0/1", "::/0"]],
  ["everybody but one half of IPv6", ["0.0.0.0/0"], ["8000::/1"], ["0.0.0.0/0", "::/1"]],
  ["nobody left", ["192.0.2.0/24"], ["192.0.0.0/16"], ["255.255.255.255/32"]],
  ["everybody on both lists", ["0.0.0.0/0", "::/0"], ["0.0.0.0/0"], ["255.255.255.255/32"]],
  ["an empty white list", [], [], ["255.255.255.255/32"]],
])("%s", (_, white, black, expected) => {
  expect(admitted(white, black)).toEqual(expected);
});

test("a hole next to the mapped addresses never leaves a range that reads as all of IPv4", () => {
  const left = admitted(["::fffe:0:0/95"], ["::fffe:0:0/96"]);
  expect(left).toEqual(["255.255.255.255/32"]);
});

test("the longest lists of single addresses stay small enough for an annotation", () => {
  const single = Array.from({ length: 10 }, (_, i) => `2001:db8:${i}:ffff:ffff:ffff:ffff:${i}/128`);
  const left = admitted(["0.0.0.0/0"], single) ?? [];
  expect(left.map(parseCidr).some(({ family }) => family === 4)).toBe(true);
  expect(left.join(",").length).toBeLessThan(128 * 1024);
});
