import { expect, test } from "vitest";
import { parseUpOptions } from "./options.ts";

test("without anything: ports and scale of the stack contract, no cluster named", () => {
  expect(parseUpOptions([], {})).toEqual({
    help: false,
    context: undefined,
    cluster: undefined,
    kubernetes: undefined,
    registry: undefined,
    registryCa: undefined,
    databases: "default",
    builds: true,
    apiPort: 8081,
    ingressPort: 8080,
    rateLimitScale: 1,
    values: undefined,
  });
});

test("reads options and environment", () => {
  const env = {
    SLIPWAY_API_PORT: "9001",
    SLIPWAY_INGRESS_PORT: "9000",
    SLIPWAY_RATE_LIMIT_SCALE: "0.5",
    SLIPWAY_VALUES: "more.yaml",
  };
  const options = parseUpOptions(["--context=prod", "--registry", "registry:5000"], env);
  expect(options).toMatchObject({
    context: "prod",
    registry: "registry:5000",
    apiPort: 9001,
    rateLimitScale: 0.5,
    values: "more.yaml",
  });
  expect(parseUpOptions(["--cluster", "kind"], { SLIPWAY_API_PORT: "" }).cluster).toBe("kind");
  expect(parseUpOptions(["--cluster", "kind", "--kubernetes", "1.33"], {}).kubernetes).toBe("1.33");
  expect(
    parseUpOptions(["--cluster", "kind", "--engine", "podman", "--nodes", "3", "--node-image", "own"], {}),
  ).toMatchObject({ engine: "podman", nodes: 3, nodeImage: "own" });
  expect(parseUpOptions(["--help", "--context", "x"], {}).help).toBe(true);
  expect(options.databases).toBe("none");
  expect(parseUpOptions(["--databases", "postgresql:16, mariadb:10"], {}).databases).toEqual([
    "postgresql:16",
    "mariadb:10",
  ]);
});

test.each([
  [["--cluster", "minikube"], {}, "--cluster is embedded or kind, not minikube"],
  [["--kubernetes", "1.33"], {}, "--kubernetes goes with --cluster kind"],
  [["--cluster", "embedded", "--kubernetes", "1.34"], {}, "--kubernetes goes with --cluster kind"],
  [
    ["--cluster", "kind", "--kubernetes", "1.2"],
    {},
    "--kubernetes is one of 1.32, 1.33, 1.34, 1.35, not 1.2",
  ],
  [["--nodes", "3"], {}, "--nodes goes with --cluster kind"],
  [["--cluster", "embedded", "--engine", "podman"], {}, "--engine goes with --cluster kind"],
  [["--cluster", "kind", "--engine", "rkt"], {}, "--engine is docker or podman, not rkt"],
  [["--cluster", "kind", "--nodes", "0"], {}, "--nodes is a number from 1 to 5, not 0"],
  [["--cluster", "kind", "--node-image", "mine"], {}, "--node-image is own or published, not mine"],
  [["--context", "a", "--cluster", "kind"], {}, "exclude each other"],
  [["--context", "a"], {}, "--context needs --registry"],
  [["--context", ""], {}, "--context needs a name"],
  [["--registry", "r"], {}, "--registry goes with --context"],
  [["--bundle-key", "release.pub"], {}, "--bundle-key goes with --bundle"],
  [["--nope"], {}, "Unknown option '--nope'"],
  [["now"], {}, "hack/up.sh --help"],
  [[], { SLIPWAY_API_PORT: "http" }, "SLIPWAY_API_PORT is no port: http"],
  [[], { SLIPWAY_INGRESS_PORT: "70000" }, "SLIPWAY_INGRESS_PORT is no port: 70000"],
  [[], { SLIPWAY_API_PORT: "8080" }, "are both 8080"],
  [[], { SLIPWAY_RATE_LIMIT_SCALE: "0" }, "SLIPWAY_RATE_LIMIT_SCALE is no positive number: 0"],
  [[], { SLIPWAY_RATE_LIMIT_SCALE: "ten" }, "SLIPWAY_RATE_LIMIT_SCALE is no positive number: ten"],
] as [string[], Record<string, string>, string][])("refuses %j with %j", (argv, env, message) => {
  expect(() => parseUpOptions(argv, env)).toThrow(message);
});
