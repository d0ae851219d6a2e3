import type { Role } from "@slipway/ledger";
import { revokeApiKey } from "@slipway/ledger";
import { Command, Option } from "commander";
import { audited } from "./audit.ts";
import { setCapacity } from "./commands/capacity.ts";
import { verifyDomain } from "./commands/domain.ts";
import { removeOrganizationMember, setOrganizationMember, type UserOptions } from "./commands/member.ts";
import { blockOrganization, createOrganization } from "./commands/organization.ts";
import { type AdminContext, AdminError, openAdminContext } from "./context.ts";
import { createApiKey, createUserToken, parseGrants, requireOrganization } from "./credentials.ts";

interface Common {
  json?: boolean;
  organization?: string;
}

/** The words of the command that runs, such as `api-key revoke`: what the audit log calls it. */
let running = "";

const collect = (value: string, previous: string[]): string[] => [...previous, value];

/** Runs a command and prints its one result: a JSON object, or a line for each field. */
async function run(options: Common, work: (context: AdminContext) => Promise<object>): Promise<void> {
  const context = openAdminContext(process.env);
  try {
    const intent = { operation: `admin ${running}`, organizationId: options.organization ?? null };
    const result = await audited(context, intent, () => work(context));
    if (options.json) console.log(JSON.stringify(result));
    else for (const [key, value] of Object.entries(result)) console.log(`${key}: ${String(value)}`);
  } finally {
    await context.close();
  }
}

function program(): Command {
  const root = new Command("admin").description("Administers the platform.").showHelpAfterError();
  root.hook("preAction", (_root, command) => {
    running = [command.parent?.name(), command.name()].filter((name) => name !== root.name()).join(" ");
  });
  const json = () => new Option("--json", "print exactly one JSON object");
  const organizationOption = () =>
    new Option("--organization <id>", "the organization's id").makeOptionMandatory();
  const grantOption = () =>
    new Option("--grant <grant>", '"PERMISSION on RESOURCE"; may be given more than once')
      .argParser(collect)
      .default([] as string[], "none");
  const roleOption = () =>
    new Option("--role <role>", "its role").choices(["owner", "assistant", "member"]).makeOptionMandatory();

  const organization = root.command("organization").description("organizations");
  organization
    .command("create")
    .description("make an organization with a key that may everything and an owner")
    .requiredOption("--name <name>", "its name, 1 to 128 characters")
    .addOption(json())
    .action((options: Common & { name: string }) =>
      run(options, (context) => createOrganization(context, options.name)),
    );
  for (const [name, blocked] of [
    ["block", true],
    ["unblock", false],
  ] as const) {
    organization
      .command(name)
      .description(blocked ? "refuse its creations with 402" : "allow its creations again")
      .addOption(organizationOption())
      .addOption(json())
      .action((options: Common & { organization: string }) =>
        run(options, (context) => blockOrganization(context, options.organization, blocked)),
      );
  }

  root
    .command("capacity")
    .description("capacities of plans")
    .command("set")
    .description("limit a plan's active projects over all organizations; without --limit there is none")
    .requiredOption("--plan <plan>", "the plan's id")
    .option("--limit <number>", "most active projects")
    .addOption(json())
    .action((options: Common & { plan: string; limit?: string }) =>
      run(options, (context) => setCapacity(context, options.plan, options.limit)),
    );

  const apiKey = root.command("api-key").description("API keys");
  apiKey
    .command("create")
    .description("make a key; it is shown once")
    .addOption(organizationOption())
    .addOption(grantOption())
    .addOption(json())
    .action((options: Common & { organization: string; grant: string[] }) =>
      run(options, async (context) => {
        const grants = parseGrants(options.grant);
        await requireOrganization(context, options.organization);
        return createApiKey(context, options.organization, grants);
      }),
    );
  apiKey
    .command("revoke")
    .description("revoke a key for good, within seconds")
    .requiredOption("--id <id>", "the key's id")
    .addOption(json())
    .action((options: Common & { id: string }) =>
      run(options, async (context) => {
        if (!(await revokeApiKey(context.ledger, options.id, new Date()))) {
          throw new AdminError(`there is no API key ${options.id}`);
        }
        return { api_key_id: options.id, revoked: true };
      }),
    );

  root
    .command("user-token")
    .description("tokens of users")
    .command("create")
    .description("make a user and its token; the token is shown once")
    .addOption(organizationOption())
    .addOption(roleOption())
    .addOption(grantOption())
    .addOption(json())
    .action((options: Common & { organization: string; role: Role; grant: string[] }) =>
      run(options, async (context) => {
        const grants = parseGrants(options.grant);
        await requireOrganization(context, options.organization);
        return createUserToken(context, options.organization, options.role, grants);
      }),
    );

  const member = root.command("member").description("members of organizations");
  const named = (name: string) =>
    member
      .command(name)
      .addOption(organizationOption())
      .option("--user <id>", "the user's id")
      .option("--issuer <address>", "the OpenID Connect issuer of the user's tokens")
      .option("--subject <subject>", "the user's subject in its tokens")
      .addOption(json());
  named("set")
    .description("give a user exactly this role and these grants")
    .addOption(roleOption())
    .addOption(grantOption())
    .action((options: Common & UserOptions & { role: Role; grant: string[] }) =>
      run(options, (context) => setOrganizationMember(context, options)),
    );
  named("remove")
    .description("take a user out of the organization, with its grants")
    .action((options: Common & UserOptions) =>
      run(options, (context) => removeOrganizationMember(context, options)),
    );

  root
    .command("domain")
    .description("custom domains")
    .command("verify")
    .description("vouch for a domain whose TXT record cannot be looked up")
    .requiredOption("--hostname <hostname>", "the domain")
    .addOption(json())
    .action((options: Common & { hostname: string }) =>
      run(options, (context) => verifyDomain(context, options.hostname)),
    );

  root
    .command("github")
    .description("accounts of GitHub")
    .command("connect")
    .description("let an organization build from an account in which the platform's GitHub App is installed")
    .addOption(organizationOption())
    .requiredOption(
      "--installation <number>",
      "the App's installation, which must be the organization's own account",
    )
    .addOption(json())
    .action((options: Common & { organization: string; installation: string }) =>
      run(options, async (context) => {
        // It brings along what speaks to Git servers, which no other command waits for.
        const { connectGithubAccount } = await import("./commands/github.ts");
        return connectGithubAccount(context, options);
      }),
    );
  return root;
}

// `npm run slipway -- admin …` hands over all its words, the first one included.
const words = process.argv.slice(2);
try {
  await program().parseAsync(words[0] === "admin" ? words.slice(1) : words, { from: "user" });
} catch (error) {
  const known = error instanceof AdminError;
  console.error(`slipway: ${known ? error.message : `failed: ${(error as Error).message}`}`);
  process.exitCode = 1;
}
