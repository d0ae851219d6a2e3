import { expect, test } from "vitest";
import { z } from "zod";
import { addressList, ConfigError, dnsName, listOf, parseSettings, portNumber } from "./settings.ts";

const schema = z.object({
  URL: z.url(),
  PORT: portNumber.default(8080),
  HOSTS: listOf(dnsName).default([]),
  DENIED: addressList,
});

test("an empty variable counts as absent, unless it may be empty", () => {
  const env = { URL: "http://a", PORT: "", HOSTS: "", DENIED: "" };
  expect(parseSettings(schema, env, ["DENIED"])).toEqual({
    URL: "http://a",
    PORT: 8080,
    HOSTS: [],
    DENIED: [],
  });
  expect(() => parseSettings(schema, env)).toThrow("DENIED: is not set");
});

test("items of a list have no spaces around them, and no empty one counts", () => {
  const env = { URL: "http://a", HOSTS: " a.example.com ,, b", DENIED: "10.0.0.0/8,::1" };
  expect(parseSettings(schema, env)).toMatchObject({
    HOSTS: ["a.example.com", "b"],
    DENIED: ["10.0.0.0/8", "::1"],
  });
});

test("the error names every variable that is missing or wrong, and no value", () => {
  const read = () => parseSettings(schema, { PORT: "s3cr3t", DENIED: "s3cr3t" });
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(
    /^the environment is not complete:\n {2}URL: is not set\n {2}PORT: .+\n {2}DENIED\.0: must be addresses or CIDRs$/,
  );
  expect(read).not.toThrow("s3cr3t");
});
