/** The README's walk-through of an application with a database, a queue and a worker, as bash runs it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../hack/lib/exec.ts";
import { logDir, root, stackFile } from "../../hack/lib/paths.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { removeRepository } from "./support/git.ts";
import { createOrganization, type Organization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";
import { functionsOf, shellOf } from "./support/walk-through.ts";

const REPOSITORY = `${stack.git.username}/shop`;

/** Its own: the page's names of projects are unique in it. */
let organization: Organization;
let call: ReturnType<typeof apiClient>;

interface Listed {
  readonly projects: readonly { readonly id: string; readonly name: string }[];
}
const projects = async () => (await call<Listed>("GET", "/v1/project")).body.data?.projects ?? [];

beforeAll(async () => {
  // A run that was stopped has left it.
  await removeRepository(REPOSITORY);
  organization = await createOrganization(uniqueName("shop"));
  call = apiClient(organization.api_key);
});
afterAll(async () => {
  const ids = (await projects()).map(({ id }) => id);
  await deleteProjects(call, ids);
  await removeRepository(REPOSITORY);
});

/** The lines of the page, which end with the first command that fails. */
function script(): string {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const before = functionsOf(shellOf(readme, "From a Git repository"), ["owner", "field"]);
  // Of a creation that is refused the answer is in a variable.
  const explain = `trap 'echo "\${CREATED-}" >&2' ERR`;
  return `set -euo pipefail\n${explain}\n${before}${shellOf(readme, "A database, a queue and a worker")}`;
}

test("the README's shop has an order written, queued and handled", { timeout: 1_200_000 }, async () => {
  const env = {
    ...parseEnv(readFileSync(stackFile, "utf8")),
    SLIPWAY_ORGANIZATION_ID: organization.organization_id,
    SLIPWAY_API_KEY: organization.api_key,
    SLIPWAY_OWNER_TOKEN: organization.owner_token,
    GIT_TERMINAL_PROMPT: "0",
  };
  const began = performance.now();
  const output = await run("bash", ["-c", script()], {
    cwd: root,
    env,
    log: join(logDir, "readme-walk-through.log"),
    timeoutMs: 1_100_000,
  });
  console.log(`the walk-through took ${Math.round((performance.now() - began) / 1_000)} s`);

  const [order = "", preDeploy = ""] = output.trim().split("\n").slice(-2);
  const worker = (await projects()).find(({ name }) => name === "shop-worker")?.id;
  expect(JSON.parse(order)).toEqual({
    id: "1",
    item: "a red kite",
    status: "handled",
    handled_by: expect.stringMatching(new RegExp(`^${worker}-`)),
  });
  expect(JSON.parse(`{${preDeploy}}`)).toMatchObject({
    pre_deploy: { status: "succeeded", exit_code: 0, last_lines: "the table orders exists" },
  });
});
