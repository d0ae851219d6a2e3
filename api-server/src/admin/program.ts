import { type Role, revokeApiKey, revokeUserTokens } from "@slipway/ledger";
import { Command, CommanderError, Option } from "commander";
import { addBillingCommands } from "./billing-program.ts";
import { setCapacity } from "./commands/capacity.ts";
import { verifyDomain } from "./commands/domain.ts";
import {
  blockOrganization,
  createOrganization,
  listBlockedForAdmin,
  removeOrganizationMember,
  setOrganizationMember,
  type UserOptions,
} from "./commands/organization.ts";
import { type AdminContext, AdminError, audited } from "./context.ts";
import { createApiKey, createUserToken, parseGrants, requireOrganization } from "./credentials.ts";
import {
  addCountryCommand,
  addInvoiceCommands,
  type CommonOptions as Common,
  type RunCommand,
} from "./invoice-program.ts";

/** The commands of `slipway admin`: their arguments, their output, and their rows in the audit log. */

/** What one call of the admin command printed, and its exit code. */
export interface AdminResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

const collect = (value: string, previous: string[]): string[] => [...previous, value];

/**
 * Runs one admin command. What it prints is returned, not written: several may run in one process.
 * @param words the command line after the program's name; a first word `admin` is skipped
 */
export async function runAdminCommand(
  words: readonly string[],
  context: Omit<AdminContext, "warn">,
): Promise<AdminResult> {
  const printed = { stdout: "", stderr: "" };
  const out = (text: string) => {
    printed.stdout += text;
  };
  const err = (text: string) => {
    printed.stderr += text;
  };
  const warn = (line: string) => err(`${line}\n`);
  try {
    const root = program({ ...context, warn }, out, err);
    await root.parseAsync(words[0] === "admin" ? words.slice(1) : words, { from: "user" });
    return { exitCode: 0, ...printed };
  } catch (error) {
    // Commander has printed its own text: help, or what is wrong with the words.
    if (error instanceof CommanderError) {
      return { exitCode: error.exitCode, ...printed };
    }
    const known = error instanceof AdminError;
    warn(`slipway: ${known ? error.message : `failed: ${(error as Error).message}`}`);
    return { exitCode: 1, ...printed };
  }
}

function program(context: AdminContext, out: (text: string) => void, err: (text: string) => void): Command {
  const root = new Command("admin").description("Administers the platform.").showHelpAfterError();
  root.exitOverride().configureOutput({ writeOut: out, writeErr: err });
  /** The words of the command, such as `api-key revoke`: what the audit log calls it. */
  let running = "";
  root.hook("preAction", (_root, command) => {
    running = [command.parent?.name(), command.name()].filter((name) => name !== root.name()).join(" ");
  });
  /** Runs a command and prints its one result: a JSON object, or a line for each field. */
  const run: RunCommand = async (options, work) => {
    const intent = { operation: `admin ${running}`, organizationId: options.organization ?? null };
    const result = await audited(context, intent, () => work(context));
    if (options.json) {
      out(`${JSON.stringify(result)}\n`);
    } else {
      for (const [key, value] of Object.entries(result)) {
        out(`${key}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}\n`);
      }
    }
  };
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

  organization
    .command("blocked")
    .description("list organizations that are blocked, and for which invoices")
    .option("--page <number>", "of 100 each, from 1 on")
    .addOption(json())
    .action((options: Common & { page?: string }) =>
      run(options, (context) => listBlockedForAdmin(context, options)),
    );
  addCountryCommand(organization, run);
  addInvoiceCommands(root, run);
  addBillingCommands(root, run);

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

  const userToken = root.command("user-token").description("tokens of users");
  userToken
    .command("revoke")
    .description("refuse every token that the platform issued to a user so far, within seconds")
    .requiredOption("--user <id>", "the user's id")
    .addOption(json())
    .action((options: Common & { user: string }) =>
      run(options, async (context) => {
        const { user } = options;
        if (user.startsWith("oidc:")) {
          throw new AdminError("tokens of other issuers are revoked there; member remove takes the user out");
        }
        if (!(await revokeUserTokens(context.ledger, user, new Date()))) {
          throw new AdminError(`there is no user ${user}`);
        }
        return { user_id: user, revoked: true };
      }),
    );
  userToken
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
        // Imported here only: it loads the Git clients, which no other command needs.
        const { connectGithubAccount } = await import("./commands/github.ts");
        return connectGithubAccount(context, options);
      }),
    );
  root
    .command("platform")
    .description("back up and restore the platform: npm run --silent slipway -- admin platform --help")
    .argument("[words...]")
    .allowUnknownOption()
    .action(() => {
      // It takes files of a person's machine, and an administrator's rights in the cluster, which this process has not.
      throw new AdminError(
        "these commands run on your machine, from the repository's root: npm run --silent slipway -- admin platform",
      );
    });
  return root;
}
