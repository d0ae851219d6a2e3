import { randomUUID } from "node:crypto";
import { CliError, type CommandDefinition, numberOf, textOf, USAGE_EXIT } from "../core/command.ts";
import { createProject, withDefaults } from "../core/creation.ts";
import { parseAssignment } from "../core/dotenv.ts";

export const create: CommandDefinition = {
  name: "create",
  summary: "Create a project",
  details:
    "From an image; databases take `--engine-version`. `slipway up` creates several from a file, with every field that there is.",
  args: [{ name: "<name>", description: "6 to 32 lower-case letters, digits and hyphens" }],
  options: [
    {
      flags: "--type <type>",
      description: "http (without it), worker, job, postgresql, mariadb, clickhouse or valkey",
    },
    { flags: "--plan <plan>", description: "id of the plan; `free` without it" },
    { flags: "--image <reference>", description: "public image" },
    { flags: "--port <number>", description: "port that the application listens on; 8080 without it" },
    { flags: "--instances <number>", description: "how many instances run" },
    { flags: "--private", description: "reached within the organization alone" },
    { flags: "--cron <schedule>", description: "of a job" },
    { flags: "--engine-version <version>", description: "of a database" },
    { flags: "--profile-of-service <profile>", description: "of Valkey: key_value, cache or queue" },
    { flags: "--env <NAME=value>", description: "a variable", isList: true },
    { flags: "--idempotency-key <key>", description: "a repetition with it creates no other project" },
  ],
  run: async (call) => {
    const [name = ""] = call.args;
    const type = textOf(call, "type") ?? "http";
    const image = textOf(call, "image");
    if (["http", "worker", "job"].includes(type) && image === undefined) {
      throw new CliError(
        `a project of type ${type} needs --image, for example --image docker.io/traefik/whoami:v1.11`,
        USAGE_EXIT,
      );
    }
    const envs = (call.options.env ?? []) as readonly string[];
    const cron = textOf(call, "cron");
    const config = {
      type_project: type,
      port: numberOf(call, "port") ?? (type === "http" ? 8080 : undefined),
      instances: numberOf(call, "instances"),
      image: image === undefined ? undefined : { url: image, is_public: true },
      exposure: call.options.private === true ? "private" : undefined,
      version: textOf(call, "engineVersion"),
      profile: textOf(call, "profileOfService"),
      job: cron === undefined ? undefined : { cron },
      envs: envs.length === 0 ? undefined : envs.map(parseAssignment),
    };
    const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
    const body = withDefaults({ name, plan: textOf(call, "plan") ?? "free", config: given });
    const key = textOf(call, "idempotencyKey") ?? randomUUID();
    await call.output.object(await createProject(call.slipway(), body, key));
    return 0;
  },
};
