import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { eachProject, type Slipway } from "@slipway/sdk";
import { CliError, type CommandDefinition } from "../core/command.ts";
import { createProject } from "../core/creation.ts";
import { creationOf, type DescribedProject, readDescription } from "../core/description.ts";
import { type Change, creation, differences } from "../core/differences.ts";
import { findProject, type Project } from "../core/project.ts";

/** A described project beside what there is, and what is to change. */
interface Step {
  readonly described: DescribedProject;
  readonly live: Project | undefined;
  readonly changes: readonly Change[];
}

export const up: CommandDefinition = {
  name: "up",
  summary: "Apply a file that describes projects",
  details:
    "The file has `projects`, by their names, each with the fields of `POST /v1/project`; variables may be a map and refer to other projects. What changes is shown first; a second call finds no changes. Plan, description, image, instances, command, custom domains and variables of projects that exist are changed where the file has them; other fields count at creation alone. Nothing is deleted.",
  args: [{ name: "<file>", description: "YAML or JSON" }],
  options: [
    { flags: "--dry-run", description: "show what would change, and exit with 1 where anything would" },
  ],
  run: async (call) => {
    const slipway = call.slipway();
    const described = readDescription(await parseFile(call.args[0] ?? ""));
    const ids = await idsByName(slipway);
    const steps: Step[] = [];
    for (const project of described) {
      steps.push(await planStep(slipway, project, ids.get(project.name) ?? []));
    }
    const changes = steps.flatMap((step) => step.changes);
    if (changes.length === 0) {
      call.output.note("no changes");
    }
    if (changes.length > 0 || call.output.format !== "table") {
      await call.output.list(changes, {
        project: (row) => row.project,
        action: ({ action }) => action,
        field: ({ field }) => field,
        from: ({ from }) => from,
        to: ({ to }) => to,
      });
    }
    if (call.options.dryRun === true || changes.length === 0) {
      return changes.length === 0 ? 0 : 1;
    }
    await call.confirm(`make ${changes.length} ${changes.length === 1 ? "change" : "changes"}?`);
    for (const step of steps.filter((one) => one.changes.length > 0)) {
      await applyStep(slipway, step);
      call.output.note(`${step.described.name}: ${step.live === undefined ? "created" : "changed"}`);
    }
    return 0;
  },
};

async function parseFile(file: string): Promise<unknown> {
  const text = await readFile(file, "utf8");
  const { parse } = await import("yaml");
  try {
    return parse(text);
  } catch (error) {
    throw new CliError(`${file}: ${(error as Error).message}`);
  }
}

async function idsByName(slipway: Slipway): Promise<Map<string, string[]>> {
  const ids = new Map<string, string[]>();
  for await (const { id, name } of eachProject(slipway)) {
    ids.set(name, [...(ids.get(name) ?? []), id]);
  }
  return ids;
}

async function planStep(
  slipway: Slipway,
  described: DescribedProject,
  ids: readonly string[],
): Promise<Step> {
  const [id] = ids;
  if (ids.length > 1) {
    throw new CliError(
      `several projects are named ${described.name}: rename all but one of ${ids.join(", ")}`,
    );
  }
  if (id === undefined) {
    return { described, live: undefined, changes: [creation(described)] };
  }
  const live = await findProject(slipway, id);
  const envs =
    described.envs === undefined
      ? []
      : (await slipway.GET("/v1/project/{id}/envs", { params: { path: { id } } })).data;
  return { described, live, changes: differences(described, live, envs) };
}

/** Makes a project as it is described. Each call may be repeated: an interrupted one is completed by the next `up`. */
async function applyStep(slipway: Slipway, { described, live, changes }: Step): Promise<void> {
  if (live === undefined) {
    await createProject(slipway, creationOf(described), randomUUID());
    return;
  }
  const on = { params: { path: { id: live.id } } };
  const { config, envs = [], plan = "", description = "" } = described;
  const fields = new Set(changes.map(({ field }) => (field.startsWith("variable ") ? "envs" : field)));
  if (fields.has("plan")) {
    const paymentMode = (described.payment_mode ?? live.payment_mode) as Project["payment_mode"];
    await slipway.PATCH("/v1/project/{id}/plan", { ...on, body: { plan, payment_mode: paymentMode } });
  }
  if (fields.has("description")) {
    await slipway.PATCH("/v1/project/{id}/description", { ...on, body: { description } });
  }
  if (fields.has("envs")) {
    await slipway.PATCH("/v1/project/{id}/envs", { ...on, body: { envs: [...envs] } });
  }
  if (fields.has("instances")) {
    await slipway.PATCH("/v1/project/{id}/autoscaling", {
      ...on,
      body: { instances: Number(config.instances) },
    });
  }
  if (fields.has("command")) {
    await slipway.PATCH("/v1/project/{id}/command", { ...on, body: { command: config.command as string[] } });
  }
  if (fields.has("custom_domains")) {
    const body = { custom_domains: config.custom_domains as string[] };
    await slipway.PATCH("/v1/project/{id}/custom-domains", { ...on, body });
  }
  if (fields.has("image")) {
    const { url } = config.image as { url: string };
    await slipway.PATCH("/v1/project/{id}/image", { ...on, body: { image: url } });
  }
}
