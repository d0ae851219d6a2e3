import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Container, containers } from "@slipway/builder/contract";
import type { Build, Project } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { task } from "../../../../builder/src/task.ts";
import { goldenTests } from "../../../../test/kit/operator/golden.ts";
import { cacheName, podName } from "../names.ts";
import { parseBuildSettings } from "../settings.ts";
import { buildsPolicy, cacheClaim } from "./namespace.ts";
import { buildPod } from "./pod.ts";
import { containerSecret, type SecretInput, secretFiles } from "./secrets.ts";
import { type SourceAddress, tasks } from "./tasks.ts";

interface Case {
  settings: object;
  build: Build;
  project: Project;
  source: SourceAddress;
  attempt?: number;
  secrets: Pick<SecretInput, "credential" | "gitCa" | "envs" | "tools">;
}

interface BuildContainer {
  name: string;
  securityContext: { seccompProfile?: object };
}

const key = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

/** All objects of a build; tokens, which differ each time, are replaced by their access. */
function desired(given: Case): object[] {
  const { build, project, source, attempt = 1 } = given;
  const settings = parseBuildSettings(stringify(given.settings));
  const input = { build, settings, ...given.secrets, registryKey: key, now: new Date(0) };
  const files = secretFiles(input);
  const cache = cacheName({ id: project.metadata.name, uid: project.metadata.uid ?? "" });
  const pod = buildPod({ build, project, source, settings, hasGitCa: input.gitCa !== "", attempt, files });
  for (const each of Object.values(tasks({ build, project, source, settings, hasGitCa: false })).flat()) {
    task.parse(each);
  }
  const owner = { name: podName(build, attempt), uid: "uid-of-the-pod" };
  const secrets = containers
    .filter((container) => Object.keys(files[container]).length > 0)
    .map((container) =>
      containerSecret(input, { container, files: shown(files[container]), cache, pod: owner }),
    )
    .map(({ data, ...rest }) => ({
      ...rest,
      stringData: Object.fromEntries(
        Object.entries(data).map(([name, text]) => [name, Buffer.from(text, "base64").toString()]),
      ),
    }));
  return [pod, ...secrets, cacheClaim(build, cache, settings), buildsPolicy(settings)];
}

const shown = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(files).map(([path, text]) => [
      path,
      path === "registry/config.json" ? JSON.stringify(allowed(text)) : text,
    ]),
  );

function allowed(config: string): object {
  const { auths } = JSON.parse(config) as { auths: Record<string, { registrytoken: string }> };
  return Object.fromEntries(
    Object.entries(auths).map(([host, { registrytoken }]) => {
      const claims = JSON.parse(Buffer.from(registrytoken.split(".")[1] ?? "", "base64url").toString()) as {
        access: unknown;
        sub: string;
        exp: number;
      };
      return [host, { access: claims.access, sub: claims.sub, exp: claims.exp }];
    }),
  );
}

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), (given) => desired(given as Case));

describe("what is secret", () => {
  const build = {
    metadata: { name: "bone", namespace: "slipway-org-alpha", uid: "u" },
    spec: { projectRef: { name: "pshop" }, triggeredBy: "push", branch: "main" },
  } as unknown as Build;
  const project = { metadata: { name: "pshop", uid: "p" }, spec: { port: 3000 } } as unknown as Project;
  const settings = parseBuildSettings(
    stringify({
      image: "builder",
      registry: { host: "registry.example:5001" },
      baseImages: { node: { "24": "registry.example:5001/base/node:24" } },
    }),
  );
  const input: SecretInput = {
    build,
    settings,
    credential: { username: "slipway", password: "canary-of-git" },
    gitCa: "",
    envs: { API_KEY: "canary-of-the-project", "..": "out", "no/path": "x" },
    tools: { NPM_CONFIG_REGISTRY: "https://user:canary-of-tools@mirror.example/" },
    registryKey: key,
    now: new Date(0),
  };
  const files = secretFiles(input);
  const source = { url: "https://git.example/a/b.git", provider: "forgejo" };

  test("is in no pod, and only in the Secret of its own container", () => {
    const pod = JSON.stringify(
      buildPod({ build, project, source, settings, hasGitCa: false, attempt: 1, files }),
    );
    expect(pod).not.toContain("canary");
    const holders = (word: string) =>
      containers.filter((container) => JSON.stringify(files[container]).includes(word));
    expect(holders("canary-of-git")).toEqual(["fetch"]);
    expect(holders("canary-of-the-project")).toEqual(["build"]);
    expect(holders("canary-of-tools")).toEqual(["build"]);
    expect(holders("PRIVATE KEY")).toEqual([]);
  });

  test("no name of a variable leads out of its folder", () => {
    expect(Object.keys(files.build).toSorted()).toEqual([
      "envs/API_KEY",
      "registry/config.json",
      "tools/NPM_CONFIG_REGISTRY",
    ]);
  });

  test("the build can only pull base images, and the push has one repository", () => {
    const access = (container: Container) => allowed(files[container]["registry/config.json"] ?? "");
    expect(access("build")).toMatchObject({
      "registry.example:5001": { access: [{ name: "base/node", actions: ["pull"] }] },
    });
    expect(access("push")).toMatchObject({
      "registry.example:5001": { access: [{ name: "alpha/pshop", actions: ["pull", "push"] }] },
    });
  });
});

test("builds of two organizations with the same name have names of their own, and so has each attempt", () => {
  const named = (namespace: string) =>
    ({ metadata: { name: "b1", namespace, uid: "u" } }) as unknown as Build;
  const names = [named("slipway-org-a"), named("slipway-org-b")].flatMap((build) =>
    [1, 2].map((n) => podName(build, n)),
  );
  expect(new Set(names).size).toBe(4);
  const long = podName(
    { metadata: { name: "x".repeat(253), namespace: "n", uid: "u" } } as unknown as Build,
    10,
  );
  expect(long.length).toBeLessThanOrEqual(57);
});

describe("the seccomp profile of the step that builds", () => {
  const file = new URL("testdata/github-tag/input.yaml", import.meta.url);
  const given = parse(readFileSync(file, "utf8")) as Case;
  const profileOf = (profile: { seccompProfile?: string } = {}) => {
    const [pod] = desired({ ...given, settings: { ...given.settings, ...profile } });
    const { containers } = (pod as { spec: { containers: BuildContainer[] } }).spec;
    return containers.find(({ name }) => name === "build")?.securityContext.seccompProfile;
  };

  test("is the chart's unless another one is named", () => {
    expect(profileOf()).toEqual({ type: "Localhost", localhostProfile: "slipway/builder.json" });
    expect(profileOf({ seccompProfile: "mine.json" })).toEqual({
      type: "Localhost",
      localhostProfile: "mine.json",
    });
  });

  test("is only disabled by name", () => {
    expect(profileOf({ seccompProfile: "Unconfined" })).toBeUndefined();
    expect(() => profileOf({ seccompProfile: "" })).toThrow(/Unconfined/);
  });
});
