import { CliError, type CommandDefinition, numberOf, textOf, USAGE_EXIT } from "../core/command.ts";
import { findProject } from "../core/project.ts";
import { followDeployment, followToEnd } from "../core/rollout.ts";

export const deploy: CommandDefinition = {
  name: "deploy",
  summary: "Deploy an image or a commit, and follow it to its end",
  details:
    "Without `--image` the project's Git repository is built: the newest commit of its branch, or `--commit`. The exit code is the result: 0 once the deployment serves, 1 when build or deployment have failed or `--timeout` has passed.",
  args: [{ name: "<project>", description: "id or name" }],
  options: [
    { flags: "--image <reference>", description: "image to run" },
    { flags: "--commit <id>", description: "full id of a commit" },
    { flags: "--branch <name>", description: "another branch than the project's" },
    { flags: "--no-follow", description: "end once it has begun" },
    { flags: "--timeout <seconds>", description: "how long it is followed; 1,800 without it" },
  ],
  run: async (call) => {
    const image = textOf(call, "image");
    const commit = textOf(call, "commit");
    const branch = textOf(call, "branch");
    if (image !== undefined && (commit !== undefined || branch !== undefined)) {
      throw new CliError("give either --image or a commit of the repository, not both", USAGE_EXIT);
    }
    const timeoutMs = (numberOf(call, "timeout") ?? 1_800) * 1_000;
    const slipway = call.slipway();
    const project = await findProject(slipway, call.args[0] ?? "");
    const on = { params: { path: { id: project.id } } };
    const before = await newestDeployment(call, project.id);
    if (image !== undefined) {
      const { message } = await slipway.PATCH("/v1/project/{id}/image", { ...on, body: { image } });
      call.output.note(message);
      return call.options.follow === false ? 0 : followDeployment(call, project.id, before, timeoutMs);
    }
    const { data } = await slipway.POST("/v1/project/{id}/deploy", {
      ...on,
      body: { branch, commit_sha: commit },
    });
    call.output.note(`build ${data.build_id}`);
    return call.options.follow === false
      ? 0
      : followToEnd(call, project.id, data.build_id, before, timeoutMs);
  },
};

const newestDeployment = async (call: Parameters<typeof followDeployment>[0], id: string) => {
  const params = { path: { id }, query: { limit: 1 } };
  const { data } = await call.slipway().GET("/v1/project/{id}/historic/deployments", { params });
  return data[0]?.id;
};
