/** A repository whose build attacks all that it can reach: the cluster, other tenants, the registry, the machine, and its own log. */
import { afterAll, test } from "vitest";
import { apiClient, deleteProjects } from "./support/api.ts";
import { attackBuild } from "./support/attack.ts";
import type { Repository } from "./support/git.ts";

const call = apiClient();
const made: string[] = [];
let repository: Repository | undefined;
afterAll(async () => {
  await deleteProjects(call, made);
  await repository?.remove();
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: asks for the metadata address, the
// Shows: docs/builds.md#what-hostile-repositories-come-to: never ends, takes all memory or all
// Shows: docs/builds.md#tested-on-the-stack: a build that tries the apiserver, the kubelet, metadata
test("nothing gets out of it, and it fails cleanly", { timeout: 600_000 }, async () => {
  await attackBuild(call, (each) => {
    if (typeof each === "string") {
      made.push(each);
    } else {
      repository = each;
    }
  });
});
