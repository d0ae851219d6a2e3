import { expect, test } from "vitest";
import { isOpenAccess } from "./network-access.ts";

const list = (...cidrs: string[]) => cidrs.map((cidr) => ({ cidr }));

test.each<[string, Parameters<typeof isOpenAccess>[0], boolean]>([
  ["no lists", undefined, true],
  ["a white list of everybody", { ingressWhiteList: list("192.0.2.0/24", "0.0.0.0/0") }, true],
  ["everybody with host bits set", { ingressWhiteList: list("10.1.2.3/0") }, true],
  ["a white list of IPv6 alone", { ingressWhiteList: list("::/0") }, false],
  ["a white list of some", { ingressWhiteList: list("192.0.2.0/24") }, false],
  ["nobody", { ingressWhiteList: [] }, false],
  [
    "everybody but some",
    { ingressWhiteList: list("0.0.0.0/0"), ingressBlackList: list("192.0.2.0/24") },
    false,
  ],
  ["an empty black list", { ingressWhiteList: list("0.0.0.0/0"), ingressBlackList: [] }, true],
])("%s", (_, access, open) => {
  expect(isOpenAccess(access)).toBe(open);
});
