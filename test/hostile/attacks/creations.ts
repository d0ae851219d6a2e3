import { httpProject, uniqueName } from "../../e2e/support/api.ts";
import { type Attack, Tally } from "../attack.ts";
import { projectsOf } from "../projects.ts";

/** Creations in all. */
const COUNT = 60;

export const creations: Attack = {
  name: "creations",
  about: "four clients that create a project, pause it, resume it and pause it again, in a loop",
  seconds: 15,
  expected: ["201", "200", "202", "402", "403", "409", "429", "503"],
  async prepare({ organizations: [organization] }) {
    const projects = projectsOf(organization);
    return {
      async run(signal) {
        const tally = new Tally();
        let left = COUNT;
        const worker = async (): Promise<void> => {
          while (left-- > 0 && !signal.aborted) {
            const made = await projects.call<{ project_id: string }>(
              "POST",
              "/v1/project",
              httpProject(uniqueName("loop"), { exposure: "private" }),
            );
            tally.add(answerOf(made));
            const id = made.body.data?.project_id;
            if (id === undefined) {
              continue;
            }
            projects.add(id);
            for (const step of ["pause", "resume", "pause"]) {
              tally.add(answerOf(await projects.call("POST", `/v1/project/${id}/${step}`)));
            }
          }
        };
        await Promise.all([worker(), worker(), worker(), worker()]);
        return tally.answers();
      },
      clean: projects.remove,
    };
  },
};

const answerOf = ({ status, body: { code } }: { status: number; body: { code?: string } }): string =>
  code === undefined ? String(status) : `${status} ${code}`;
