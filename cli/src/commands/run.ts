import { randomUUID } from "node:crypto";
import { type CommandDefinition, numberOf } from "../core/command.ts";
import { findProject } from "../core/project.ts";

const POLL_MS = 2_000;
const ACTIVE: readonly string[] = ["pending", "starting", "running"];

export const run: CommandDefinition = {
  name: "run",
  summary: "Run a command once, apart from the instances",
  details:
    "In a container of its own, with the image and the variables of the newest deployment. The exit code is the command's own.",
  args: [
    { name: "<project>", description: "id or name" },
    { name: "<command...>", description: "the command's words, after --" },
  ],
  options: [
    { flags: "--timeout <seconds>", description: "after which it is ended" },
    { flags: "--detach", description: "end once it has begun" },
  ],
  run: async (call) => {
    const slipway = call.slipway();
    const { id } = await findProject(slipway, call.args[0] ?? "");
    const timeout = numberOf(call, "timeout");
    const { data } = await slipway.POST("/v1/project/{id}/runs", {
      params: { path: { id }, header: { "idempotency-key": randomUUID() } },
      body: { command: call.args.slice(1), ...(timeout === undefined ? {} : { timeout_seconds: timeout }) },
    });
    const params = { path: { id, runId: data.run.id } };
    call.output.note(`run ${data.run.id}`);
    if (call.options.detach === true) {
      return 0;
    }
    for (;;) {
      const { data: read } = await slipway.GET("/v1/project/{id}/runs/{runId}", { params });
      const { status, exit_code: exitCode } = read.run;
      if (ACTIVE.includes(status)) {
        await call.sleep(POLL_MS);
        continue;
      }
      const { data: written } = await slipway.GET("/v1/project/{id}/runs/{runId}/logs", { params });
      call.output.line(written.logs.replace(/\n$/, ""));
      call.output.note(`run ${data.run.id}: ${status}`);
      return exitCode ?? (status === "succeeded" ? 0 : 1);
    }
  },
};
