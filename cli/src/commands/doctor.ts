import { stat } from "node:fs/promises";
import type { CommandDefinition } from "../core/command.ts";
import { describeFailure } from "../core/failures.ts";

interface Check {
  check: string;
  result: "ok" | "failed" | "skipped";
  detail: string;
}

export const doctor: CommandDefinition = {
  name: "doctor",
  summary: "Check settings, server and credential",
  details: "The exit code is 1 when a check has failed.",
  run: async ({ settings, output, connect }) => {
    const { url, apiKey, file, profile } = settings;
    const checks: Check[] = [await checkFile(file)];
    checks.push(
      url === undefined
        ? { check: "address", result: "failed", detail: "run `slipway login`, or set SLIPWAY_URL" }
        : { check: "address", result: "ok", detail: `${url} (profile ${profile})` },
    );
    const slipway = connect(url ?? "", apiKey, { attempts: 1 });
    const call = async (check: string, of: () => Promise<string>): Promise<void> => {
      if (url === undefined) {
        checks.push({ check, result: "skipped", detail: "" });
        return;
      }
      try {
        checks.push({ check, result: "ok", detail: await of() });
      } catch (error) {
        checks.push({
          check,
          result: "failed",
          detail: describeFailure(error).message.replaceAll("\n ", ";"),
        });
      }
    };
    await call("server", async () => {
      const { data } = await slipway.GET("/v1/project/plans");
      return `${data.length} plans`;
    });
    await call("credential", async () => {
      const { data } = await slipway.GET("/v1/project", { params: { query: { limit: 1 } } });
      return `${data.pagination.total} projects`;
    });
    await output.list(checks, {
      check: ({ check }) => check,
      result: ({ result }) => result,
      detail: ({ detail }) => detail,
    });
    return checks.some(({ result }) => result === "failed") ? 1 : 0;
  },
};

async function checkFile(file: string): Promise<Check> {
  try {
    const mode = (await stat(file)).mode & 0o777;
    const isPrivate = (mode & 0o077) === 0;
    const detail = isPrivate ? file : `others may read ${file}: run chmod 600 on it`;
    return { check: "profiles", result: isPrivate ? "ok" : "failed", detail };
  } catch {
    return { check: "profiles", result: "skipped", detail: `no ${file}` };
  }
}
