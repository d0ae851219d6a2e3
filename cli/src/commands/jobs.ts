import { randomUUID } from "node:crypto";
import { eachJobRun } from "@slipway/sdk";
import type { CommandDefinition } from "../core/command.ts";
import { findProject } from "../core/project.ts";

const job = { name: "<job>", description: "id or name" };
const POLL_MS = 2_000;
const ACTIVE: readonly string[] = ["pending", "starting", "running"];

export const jobs: CommandDefinition = {
  name: "jobs",
  summary: "Use jobs",
  subcommands: [
    {
      name: "run",
      summary: "Start a run of a job, and follow it to its end",
      details: "The exit code is 0 when the run has succeeded.",
      args: [job],
      options: [{ flags: "--detach", description: "end once it has begun" }],
      run: async (call) => {
        const slipway = call.slipway();
        const { id } = await findProject(slipway, call.args[0] ?? "");
        const { data } = await slipway.POST("/v1/project/{id}/job-runs", {
          params: { path: { id }, header: { "idempotency-key": randomUUID() } },
        });
        const runId = data.run.id;
        call.output.note(`run ${runId}`);
        if (call.options.detach === true) {
          return 0;
        }
        for (;;) {
          const params = { path: { id, runId } };
          const { data: read } = await slipway.GET("/v1/project/{id}/job-runs/{runId}/logs", { params });
          if (!ACTIVE.includes(read.run.status)) {
            call.output.line(read.logs.replace(/\n$/, ""));
            call.output.note(`run ${runId}: ${read.run.status}`);
            return read.run.status === "succeeded" ? 0 : 1;
          }
          await call.sleep(POLL_MS);
        }
      },
    },
    {
      name: "list",
      summary: "List runs of a job in this billing cycle",
      args: [job],
      run: async (call) => {
        const slipway = call.slipway();
        const { id } = await findProject(slipway, call.args[0] ?? "");
        const rows: {
          id: string;
          status: string;
          started_at?: string | null;
          duration_seconds?: number | null;
        }[] = [];
        for await (const run of eachJobRun(slipway, id)) {
          rows.push(run);
        }
        await call.output.list(rows, {
          id: (row) => row.id,
          status: ({ status }) => status,
          started: (row) => row.started_at ?? undefined,
          seconds: (row) => row.duration_seconds ?? undefined,
        });
        return 0;
      },
    },
  ],
};
