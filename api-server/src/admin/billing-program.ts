import { type Command, CommanderError, Option } from "commander";
import { type AuditOptions, auditBillingCommand } from "./commands/billing.ts";
import type { CommonOptions, RunCommand } from "./invoice-program.ts";

/** The commands of `slipway admin billing`. */
export function addBillingCommands(root: Command, run: RunCommand): void {
  root
    .command("billing")
    .description("what was charged")
    .command("audit")
    .description("prove what was charged from what was recorded; exits with 1 when anything is found")
    .option("--organization <id>", "of this organization alone")
    .option("--from <date>", "from the month of this day on, such as 2026-01-31; the first one without it")
    .option("--to <date>", "through the month of this day; the current one without it")
    .option("--cluster", "compare what projects' objects say, too")
    .option("--head <hash>", "the hash of a seal that was kept elsewhere: it must be in the chain")
    .addOption(new Option("--json", "print exactly one JSON object"))
    .action(async (options: CommonOptions & AuditOptions) => {
      let isClean = false;
      await run(options, async (context) => {
        const result = await auditBillingCommand(context, options);
        isClean = result.clean;
        return result;
      });
      if (!isClean) {
        throw new CommanderError(1, "slipway.findings", "the audit has findings");
      }
    });
}
