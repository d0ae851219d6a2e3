import { buildsRegistryHost } from "../../../hack/cluster/addresses.ts";
import { uniqueName } from "../../e2e/support/api.ts";
import { createGitProject, untilEnded } from "../../e2e/support/builds.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { connectRepository, createRepository } from "../../e2e/support/git.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** Past what a build may use of its node's disk; no more than 16 GiB in all, should nothing end it. */
const DOCKERFILE = `FROM scratch-base
RUN i=0; while [ $i -lt 64 ]; do dd if=/dev/zero of=/var/tmp/f$i bs=1M count=256 || exit 9; i=$((i+1)); done
`;

export const buildDisk: Attack = {
  name: "build-disk",
  about: "a build whose step writes until its disk is full",
  seconds: 120,
  isAlone: true,
  expected: ["failed BUILD_DISK_FULL", "failed BUILD_COMMAND_FAILED"],
  async prepare({ organizations: [organization] }) {
    const projects = projectsOf(organization);

    const repository = await createRepository(uniqueName("build-disk"), {
      Dockerfile: DOCKERFILE.replace("scratch-base", `${buildsRegistryHost}/base/debian:13`),
    });
    const owner = { organization: organization.organization_id, token: organization.owner_token };
    const source = await eventually(() => connectRepository(repository, owner));
    return {
      async run() {
        const tally = new Tally();
        const made = await eventually(() =>
          createGitProject(projects.call, uniqueName("build-disk"), source, {
            source: { auto_deploy: false },
            build: { runtime: "dockerfile", version: undefined, start_command: undefined },
          }),
        );
        projects.add(made.project_id);
        const { status, error_code } = await untilEnded(projects.call, made.project_id, made.build_id);
        tally.add(`${status} ${error_code ?? ""}`);
        return tally.answers();
      },
      clean: async () => {
        await projects.remove();
        await repository.remove();
      },
    };
  },
};
