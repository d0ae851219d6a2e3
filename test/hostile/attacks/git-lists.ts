import { uniqueName } from "../../e2e/support/api.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { connectRepository, createRepository, type Repository } from "../../e2e/support/git.ts";
import type { Organization } from "../../e2e/support/organization.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";

const BRANCHES = 150;
/** Names that git accepts and that shells, HTML, SQL and paths give a meaning. */
const hostile = ["$(reboot)", "<script>", "'--", "%2e%2e%2f", "a".repeat(90), "\u202egnp.exe", "🚀"];
const branchName = (index: number): string => `${hostile[index % hostile.length]}-${index}`;

/** A repository of an organization, over a connection of its own. */
export async function connectedRepository(name: string, { organization_id, owner_token }: Organization) {
  const repository = await createRepository(uniqueName(name), { "about.txt": name });
  const owner = { organization: organization_id, token: owner_token };
  // An attack before may have used up the rate limit.
  const { connectionId, repositoryId } = await eventually(() => connectRepository(repository, owner));
  const headers = { authorization: `Bearer ${owner_token}`, "x-organization-id": organization_id };
  const connection = `/v1/git/connections/${connectionId}`;
  return {
    repository,
    headers,
    paths: [`${connection}/repositories`, `${connection}/repositories/${repositoryId}/branches`],
  };
}

async function addBranches(repository: Repository): Promise<void> {
  for (let index = 0; index < BRANCHES; index += 1) {
    await repository.branch(branchName(index));
  }
}

export const gitLists: Attack = {
  name: "git-lists",
  about: `24 clients that list repositories, and ${BRANCHES} branches with hostile names, in a loop`,
  seconds: 12,
  expected: ["200", "429", "503"],
  async prepare({ url, organizations: [organization] }) {
    const { repository, headers, paths } = await connectedRepository("git-lists", organization);
    await addBranches(repository);
    return {
      run: (signal) =>
        calls(
          {
            url,
            concurrency: 24,
            count: 10_000,
            next: (index) => ({ method: "GET", path: paths[index % paths.length] ?? "", headers }),
          },
          signal,
        ),
      clean: async () => {
        await repository.remove();
      },
    };
  },
};
