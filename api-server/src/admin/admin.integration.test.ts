import { execFile } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeClient, resources } from "@slipway/controller-runtime";
import {
  annotations,
  type DomainClaim,
  domainClaim,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import {
  connectLedger,
  findMember,
  type Ledger,
  listOrganizations,
  migrateToLatest,
  recordBillableChanges,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { fakeKubeconfig } from "../../../test/kit/api-server/kubeconfig.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { startGithub } from "../../../test/kit/git/github-server.ts";
import { forge } from "../../../test/kit/ledger/forge.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { Authenticator, ledgerCredentials } from "../auth/authenticator.ts";
import { ownTokenVerifier, readTokenKey } from "../auth/credentials.ts";
import { domainClaimResource, projectResource } from "../resources.ts";
import { openAdminContext } from "./context.ts";
import { runAdminCommand } from "./program.ts";

const directory = mkdtempSync(join(tmpdir(), "slipway-admin-"));
const tokenKeyFile = join(directory, "token-key.pem");
const kubeconfig = join(directory, "kubeconfig");

let postgres: TestPostgres;
let ledger: Ledger;
let apiserver: FakeApiserver;
let stopOperator: () => void;
let githubEnv: Record<string, string> = {};

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  apiserver = await FakeApiserver.start();
  stopOperator = actAsOperator();
  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(tokenKeyFile, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  writeFileSync(kubeconfig, fakeKubeconfig(apiserver.url));
  process.env.KUBECONFIG = kubeconfig;
});

afterAll(async () => {
  stopOperator?.();
  await ledger?.destroy();
  await postgres?.stop();
  await apiserver?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** Creates and provisions the namespace of every organization in the ledger, a moment after it was added. */
function actAsOperator(): () => void {
  const kube = KubeClient.forUrl(apiserver.url);
  const timer = setInterval(async () => {
    for (const { id } of await listOrganizations(ledger)) {
      const metadata = { name: organizationNamespace(id), annotations: { [annotations.guarded]: "1" } };
      await kube.create(resources.namespaces, { metadata }).catch(() => undefined);
    }
  }, 50);
  return () => {
    clearInterval(timer);
    void kube.close();
  };
}

interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

const environment = () => ({
  SLIPWAY_LEDGER_URL: postgres.url,
  SLIPWAY_TOKEN_KEY_FILE: tokenKeyFile,
  SLIPWAY_CATALOG_FILE: new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url).pathname,
  ...githubEnv,
});

/** As the admin server runs a command. */
async function admin(...args: string[]): Promise<Result> {
  const { close, ...context } = openAdminContext(environment());
  try {
    const { exitCode, stdout, stderr } = await runAdminCommand(args, context);
    return { code: exitCode, stdout, stderr };
  } finally {
    await close();
  }
}

/** In a process of its own. */
function adminProcess(...args: string[]): Promise<Result> {
  const main = new URL("main.ts", import.meta.url).pathname;
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE, KUBECONFIG: kubeconfig, ...environment() };
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

const authenticator = () =>
  new Authenticator(ledgerCredentials(ledger), ownTokenVerifier(readTokenKey(tokenKeyFile)));

describe("the admin command", () => {
  // Shows: docs/applications.md#administration: `admin organization create`
  it("creates an organization with a key of every permission and an owner", async () => {
    const result = await json("admin", "organization", "create", "--name", "Acme");
    expect(Object.keys(result).sort()).toEqual(["api_key", "organization_id", "owner_token"]);
    const byKey = await authenticator().authenticate({ "x-api-key": String(result.api_key) });
    expect(byKey.organizationId).toBe(result.organization_id);
    expect(byKey.grants.onOrganization("project.create")).toBe(true);
    expect(byKey.grants.onProject("project.delete", "any")).toBe(true);
    const owner = await authenticator().authenticate({
      authorization: `Bearer ${result.owner_token}`,
      "x-organization-id": String(result.organization_id),
    });
    expect(owner).toMatchObject({ kind: "user", role: "owner" });
    expect((owner.expiresAt ?? 0) - Date.now()).toBeGreaterThan(30 * 86_400_000);
  });

  it("runs in a process of its own, too, whose exit code and output it is", async () => {
    const done = await adminProcess("capacity", "set", "--plan", "basic", "--json");
    expect(done).toEqual({ code: 0, stdout: '{"plan":"basic","limit":null}\n', stderr: "" });
    const refused = await adminProcess("admin", "api-key", "revoke", "--id", "none", "--json");
    expect(refused).toEqual({ code: 1, stdout: "", stderr: "slipway: there is no API key none\n" });
  });

  // Shows: docs/git.md#github: `admin github connect --organization ID --installation NUMBER`
  it("connects an organization with an account of GitHub, and says why it cannot", async () => {
    const { organization_id } = await json("organization", "create", "--name", "Hub");
    const words = ["github", "connect", "--organization", String(organization_id), "--installation"];
    const without = await admin(...words, "5");
    expect([without.code, without.stderr]).toEqual([1, expect.stringMatching(/has no GitHub App/)]);
    const github = await startGithub();
    const [keyFile, caFile] = [join(directory, "github.pem"), join(directory, "github-ca.pem")];
    writeFileSync(keyFile, github.app.privateKey, { mode: 0o600 });
    writeFileSync(caFile, github.ca);
    githubEnv = {
      SLIPWAY_GITHUB_APP_ID: "42",
      SLIPWAY_GITHUB_KEY_FILE: keyFile,
      SLIPWAY_GITHUB_API_URL: github.url,
      SLIPWAY_GIT_ALLOWED_HOSTS: github.host,
      SLIPWAY_GIT_CA_FILE: caFile,
    };
    try {
      const result = await json(...words, "5");
      expect(result).toEqual({
        organization_id,
        connection_id: expect.stringMatching(/^g/),
        account: "octocat",
      });
      expect(await json(...words, "5")).toEqual(result);
      const unknown = await admin(...words, "6");
      expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/not installed there/)]);
    } finally {
      githubEnv = {};
      await github.close();
    }
  });

  // Shows: docs/applications.md#authentication: 4. grants on `organization:*`, `project:*`
  // Shows: docs/applications.md#administration: `admin api-key create`
  // Shows: docs/applications.md#administration: `admin api-key revoke`
  it("creates a key with exactly its grants, and revokes it", async () => {
    const { organization_id: organization } = await json("organization", "create", "--name", "Keys");
    const created = await json(
      ...["api-key", "create", "--organization", String(organization)],
      ...["--grant", "project.read on project:p1", "--grant", "project.create on organization:*"],
    );
    expect(Object.keys(created).sort()).toEqual(["api_key", "api_key_id"]);
    const { grants } = await authenticator().authenticate({ "x-api-key": String(created.api_key) });
    expect(grants.onProject("project.read", "p1")).toBe(true);
    expect(grants.onProject("project.read", "p2")).toBe(false);
    const revoked = await json("api-key", "revoke", "--id", String(created.api_key_id));
    expect(revoked).toEqual({ api_key_id: created.api_key_id, revoked: true });
    await expect(
      authenticator().authenticate({ "x-api-key": String(created.api_key) }),
    ).rejects.toMatchObject({ status: 401 });
  });

  // Shows: docs/applications.md#administration: `admin user-token create`
  // Shows: docs/applications.md#administration: `admin organization block`, `admin organization unblock`
  it("creates a member with its grants, and blocks and unblocks the organization", async () => {
    const { organization_id: organization } = await json("organization", "create", "--name", "Members");
    const id = String(organization);
    const result = await json(
      ...["user-token", "create", "--organization", id, "--role", "member"],
      ...["--grant", "project.read on project:*"],
    );
    expect(Object.keys(result).sort()).toEqual(["token", "user_id"]);
    const member = await authenticator().authenticate({
      authorization: `Bearer ${result.token}`,
      "x-organization-id": id,
    });
    expect(member).toMatchObject({ role: "member", actor: `user:${result.user_id}` });
    expect(member.grants.onProject("project.delete", "p1")).toBe(false);
    expect(await json("organization", "block", "--organization", id)).toEqual({
      organization_id: id,
      blocked: true,
    });
    expect(await json("organization", "unblock", "--organization", id)).toMatchObject({ blocked: false });
  });

  it("revokes the tokens of a user, which are refused with 401", async () => {
    const { organization_id: organization, owner_token: owner } = await json(
      ...["organization", "create", "--name", "Revoked"],
    );
    const headers = (token: unknown) => ({
      authorization: `Bearer ${token}`,
      "x-organization-id": String(organization),
    });
    const result = await json(
      ...["user-token", "create", "--organization", String(organization), "--role", "member"],
    );
    const known = authenticator();
    expect(await known.authenticate(headers(result.token))).toMatchObject({ role: "member" });
    const revoked = await json("user-token", "revoke", "--user", String(result.user_id));
    expect(revoked).toEqual({ user_id: result.user_id, revoked: true });
    await expect(async () => authenticator().authenticate(headers(result.token))).rejects.toMatchObject({
      status: 401,
    });
    // One that has seen the token refuses it within seconds, too.
    await eventually("the refusal", async () => {
      const answer = await Promise.resolve(known.authenticate(headers(result.token))).catch(
        (error: unknown) => error,
      );
      return (answer as { status?: number }).status === 401;
    });
    expect(await authenticator().authenticate(headers(owner))).toMatchObject({ role: "owner" });
  });

  // Shows: docs/applications.md#administration: `admin member set`, `admin member remove`: users of an
  it("sets and removes a member that an issuer's tokens name", async () => {
    const { organization_id: organization } = await json("organization", "create", "--name", "Issued");
    const id = String(organization);
    const user = ["--organization", id, "--issuer", "https://id.example.com", "--subject", "ada"];
    const userId = "oidc:3d38e146cf9fbc8c:ada";
    const set = await json(
      ...["member", "set", ...user, "--role", "member"],
      ...["--grant", "project.read on project:*", "--grant", "project.delete on project:p1"],
    );
    expect(set).toEqual({
      organization_id: id,
      user_id: userId,
      role: "member",
      grants: ["project.read on project:*", "project.delete on project:p1"],
    });
    // Exactly what was said last, not what was ever said.
    const less = ["member", "set", "--organization", id, "--user", userId, "--role", "assistant"];
    await json(...less, "--grant", "project.read on project:p2");
    const found = await findMember(ledger, userId, id);
    expect(found).toMatchObject({
      role: "assistant",
      grants: [{ permission: "project.read", resource: "project:p2" }],
    });
    expect(await json("member", "remove", ...user)).toEqual({
      organization_id: id,
      user_id: userId,
      removed: true,
    });
    expect(await findMember(ledger, userId, id)).toBeUndefined();
    expect((await admin("member", "remove", ...user)).stderr).toMatch(/is no member of organization/);
  });

  // Shows: docs/applications.md#administration: `admin domain verify`
  it("vouches for a claimed domain, and waits for the operator to take it up", async () => {
    const kube = KubeClient.forUrl(apiserver.url);
    const project = {
      apiVersion: "slipway.dev/v1alpha1" as const,
      kind: "Project" as const,
      metadata: { name: "p1", namespace: "slipway-org-acme", uid: "u1" },
      spec: exampleSpec,
    };
    const hostname = "shop.example.com";
    await kube.create(
      domainClaimResource,
      domainClaim(project, { hostname, organization: "acme", kind: "custom" }),
    );
    const verified = json("domain", "verify", "--hostname", "Shop.Example.com.");
    await eventually("the annotation", async () => {
      const claim = await kube.get<DomainClaim>(domainClaimResource, { name: hostname });
      if (claim.metadata.annotations?.[annotations.verifiedByOperator] !== "true") {
        return false;
      }
      const condition = { type: "Verified", status: "True" };
      const status = { observedGeneration: 1, conditions: [condition] } as DomainClaim["status"];
      await kube.updateStatus(domainClaimResource, { ...claim, status } as DomainClaim);
      return true;
    });
    expect(await verified).toEqual({ hostname, verified: true });
    await kube.close();
  });

  // Shows: docs/applications.md#administration: `admin capacity set`
  it("limits a plan over all organizations, and lifts the limit", async () => {
    const limited = await json("admin", "capacity", "set", "--plan", "basic", "--limit", "3");
    expect(limited).toEqual({ plan: "basic", limit: 3 });
    const capacities = () => ledger.selectFrom("plan_capacities").selectAll().execute();
    expect(await capacities()).toEqual([{ plan: "basic", max_projects: 3 }]);
    expect(await json("capacity", "set", "--plan", "basic", "--limit", "0")).toMatchObject({ limit: 0 });
    expect(await json("capacity", "set", "--plan", "basic")).toEqual({ plan: "basic", limit: null });
    expect(await capacities()).toEqual([]);
  });

  // Shows: docs/applications.md#administration: every one: in the audit log, one clear line when it fails
  it("leaves a row in the audit log, with its outcome and without a secret", async () => {
    const result = await json("organization", "create", "--name", "Audited");
    const id = String(result.organization_id);
    await json("organization", "block", "--organization", id);
    await admin("organization", "block", "--organization", "nobody", "--json");
    const rows = await ledger.selectFrom("audit_log").selectAll().orderBy("id", "desc").limit(3).execute();
    expect(rows.reverse()).toMatchObject([
      { actor: "admin", operation: "admin organization create", organization_id: id, status: 200 },
      { operation: "admin organization block", organization_id: id, status: 200, code: null },
      { operation: "admin organization block", organization_id: "nobody", code: "ADMIN_REFUSED" },
    ]);
    for (const secret of [result.api_key, result.owner_token]) {
      expect(JSON.stringify(rows)).not.toContain(secret);
    }
  });

  it("compares what is billed of projects with their objects", async () => {
    const organizationId = String(
      (await json("organization", "create", "--name", "Metered")).organization_id,
    );
    const kube = KubeClient.forUrl(apiserver.url);
    const namespace = organizationNamespace(organizationId);
    const project = await kube.create<Project>(projectResource, {
      metadata: { name: "pmetered", namespace },
      spec: exampleSpec,
    } as Project);
    const projectUid = project.metadata.uid ?? "";
    const change = { plan: "basic", paymentMode: "hourly" as const, instances: 1 };
    const at = "2026-01-01T00:00:00.000Z";
    const status = { ...project.status, billing: { changes: [{ number: 1, at, ...change }] } };
    await kube.updateStatus(projectResource, { ...project, status } as Project);
    const state = { ...change, renews: true, paused: false, billedGb: 0 };
    const row = { organizationId, projectId: "pmetered", number: 1, at: new Date(at), state };
    await recordBillableChanges(ledger, [{ ...row, projectUid }]);
    const audit = ["billing", "audit", "--organization", organizationId, "--cluster"];
    const found = async () => JSON.parse((await admin(...audit, "--json")).stdout) as object;
    expect(await found()).toMatchObject({ clean: true, objects: 1 });
    const other = { ...row, projectUid: "u-gone", projectId: "pgone" };
    await recordBillableChanges(ledger, [other, { ...row, projectUid, number: 2 }]);
    // What was recorded just now may be on its way.
    expect(await found()).toMatchObject({ clean: true, counts: {} });
    await ledger
      .transaction()
      .execute((transaction) =>
        forge(transaction, "update billable_changes set recorded_at = now() - interval '2 hours'"),
      );
    expect(await found()).toMatchObject({
      counts: { OBJECT_DIFFERS: 1, OBJECT_MISSING: 1 },
      findings: [
        { code: "OBJECT_DIFFERS", key: `${projectUid}/2`, expected: "none" },
        { code: "OBJECT_MISSING", key: "u-gone" },
      ],
    });
  });

  // Shows: docs/applications.md#administration: every one: in the audit log, one clear line when it fails
  it.each([
    [["capacity", "set", "--plan", "golden", "--limit", "1"], /there is no plan golden/],
    [["capacity", "set", "--plan", "basic", "--limit", "-1"], /must be a whole number/],
    [["capacity", "set", "--plan", "basic", "--limit", "1.5"], /must be a whole number/],
    [["capacity", "set", "--limit", "1"], /--plan/],
    [["domain", "verify", "--hostname", "nobody.example.com"], /no project claims the domain nobody/],
    [["member", "set", "--organization", "x", "--role", "owner"], /either by --user, or by --issuer/],
    [["member", "set", "--organization", "x", "--user", "u", "--role", "owner"], /no organization x/],
    [["api-key", "create", "--organization", "nobody"], /there is no organization nobody/],
    [["api-key", "create", "--organization", "x", "--grant", "fly on project:*"], /unknown permission fly/],
    [["user-token", "create", "--organization", "x", "--role", "king"], /Allowed choices/],
    [["api-key", "revoke", "--id", "none"], /there is no API key none/],
    [["user-token", "revoke", "--user", "none"], /there is no user none/],
    [["user-token", "revoke", "--user", "oidc:3d38e146cf9fbc8c:ada"], /member remove/],
    [["organization", "create"], /--name/],
  ])("%j fails with one clear line and prints nothing else", async (args, message) => {
    const { code, stdout, stderr } = await admin(...args, "--json");
    expect(code).not.toBe(0);
    expect(stdout).toBe("");
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});
