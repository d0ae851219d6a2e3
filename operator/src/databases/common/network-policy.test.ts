import { describe, expect, test } from "vitest";
import { admittedBlocks } from "./network-policy.ts";

const blocks = (white: string[], black: string[] = []) =>
  admittedBlocks({
    ingressWhiteList: white.map((cidr) => ({ cidr })),
    ingressBlackList: black.map((cidr) => ({ cidr })),
  });

describe("whom the lists of a database admit", () => {
  test("nobody without a white list", () => {
    expect(admittedBlocks(undefined)).toEqual([]);
    expect(blocks([], ["10.0.0.0/8"])).toEqual([]);
  });

  test("0.0.0.0/0 is everybody of both families", () => {
    expect(blocks(["0.0.0.0/0"])).toEqual([{ cidr: "0.0.0.0/0" }, { cidr: "::/0" }]);
  });

  test("a black range inside a white one is excepted from it alone", () => {
    expect(blocks(["10.1.0.0/16", "10.2.0.0/16"], ["10.1.5.0/24", "2001:db8::/32"])).toEqual([
      { cidr: "10.1.0.0/16", except: ["10.1.5.0/24"] },
      { cidr: "10.2.0.0/16" },
    ]);
  });

  test("a white range inside a black one, or equal to it, is left out", () => {
    expect(blocks(["10.1.0.0/16", "10.1.5.0/24", "192.0.2.0/24"], ["10.1.0.0/16"])).toEqual([
      { cidr: "192.0.2.0/24" },
    ]);
    expect(blocks(["203.0.113.0/24"], ["0.0.0.0/0"])).toEqual([]);
  });

  test("ranges lose their host bits, and are listed once", () => {
    expect(blocks(["10.1.2.3/16", "10.1.0.0/16"], ["10.1.9.9/24"])).toEqual([
      { cidr: "10.1.0.0/16", except: ["10.1.9.0/24"] },
    ]);
  });
});
