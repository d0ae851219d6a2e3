import { eachProject, type operations, type Slipway, SlipwayError } from "@slipway/sdk";
import { CliError } from "./command.ts";

export type Project = operations["readProject"]["responses"][200]["content"]["application/json"]["data"];

/** A project by its id, or by its name where only one has it. @throws CliError, SlipwayError */
export async function findProject(slipway: Slipway, name: string): Promise<Project> {
  const byId = await readProject(slipway, name);
  if (byId !== undefined) {
    return byId;
  }
  const ids: string[] = [];
  for await (const project of eachProject(slipway, { search: name })) {
    if (project.name === name) {
      ids.push(project.id);
    }
  }
  const [id] = ids;
  if (id === undefined) {
    throw new CliError(
      `there is no project ${JSON.stringify(name)}: \`slipway projects\` lists those that the key can read`,
    );
  }
  if (ids.length > 1) {
    throw new CliError(
      `several projects are named ${JSON.stringify(name)}: give one of the ids ${ids.join(", ")}`,
    );
  }
  const { data } = await slipway.GET("/v1/project/{id}", { params: { path: { id } } });
  return data;
}

/** Undefined where there is none of the id. */
async function readProject(slipway: Slipway, id: string): Promise<Project | undefined> {
  try {
    return (await slipway.GET("/v1/project/{id}", { params: { path: { id } } })).data;
  } catch (error) {
    if (error instanceof SlipwayError && (error.code === "PROJECT_NOT_FOUND" || error.status === 400)) {
      return undefined;
    }
    throw error;
  }
}
