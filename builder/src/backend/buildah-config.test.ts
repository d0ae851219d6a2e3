import { expect, test } from "vitest";
import { containersConf, policy, registriesConf } from "./buildah-config.ts";

test("a registry is read from its place on loopback alone", () => {
  expect(
    registriesConf({ "10.0.0.5:5001": "127.0.0.1:4000" }),
  ).toBe(`unqualified-search-registries = ["docker.io"]
short-name-mode = "disabled"
[[registry]]
prefix = "10.0.0.5:5001"
location = "127.0.0.1:4000"
insecure = true
`);
});

test("the other files are as buildah reads them", () => {
  expect(containersConf('/a"b')).toBe('[engine]\nhelper_binaries_dir = ["/a\\"b"]\n');
  expect(JSON.parse(policy)).toEqual({ default: [{ type: "insecureAcceptAnything" }] });
});
