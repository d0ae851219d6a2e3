import { type Command, Option } from "commander";
import {
  type CreditOptions,
  credit,
  listAllInvoices,
  listEvents,
  type PayOptions,
  pay,
  setCountry,
  showInvoice,
} from "./commands/invoice.ts";
import type { AdminContext } from "./context.ts";

/** What every command has. */
export interface CommonOptions {
  json?: boolean;
  organization?: string;
}

export type RunCommand = (
  options: CommonOptions,
  work: (context: AdminContext) => Promise<object>,
) => Promise<void>;

const json = () => new Option("--json", "print exactly one JSON object");

/** The commands of `slipway admin invoice`. */
export function addInvoiceCommands(root: Command, run: RunCommand): void {
  const invoice = root.command("invoice").description("invoices, their payments and credit notes");
  invoice
    .command("list")
    .description("list invoices, the newest first")
    .option("--organization <id>", "of this organization alone")
    .option("--page <number>", "of 100 each, from 1 on")
    .addOption(json())
    .action((options: CommonOptions & { page?: string }) =>
      run(options, (context) => listAllInvoices(context, options)),
    );
  invoice
    .command("events")
    .description("list payments that were reported, and what became of them, the newest first")
    .option("--invoice <number>", "of those that name this invoice alone")
    .option("--refused", "those alone that changed nothing, and were to")
    .option("--page <number>", "of 100 each, from 1 on")
    .addOption(json())
    .action((options: CommonOptions & { invoice?: string; refused?: boolean; page?: string }) =>
      run(options, (context) => listEvents(context, options)),
    );
  const one = (name: string) =>
    invoice
      .command(name)
      .requiredOption("--invoice <number>", "the invoice's number, such as 2026-000001")
      .addOption(json());
  one("show")
    .description("show an invoice with its lines, payments and credit notes")
    .option("--page <number>", "of 10,000 lines each, from 1 on")
    .action((options: CommonOptions & { invoice: string; page?: string }) =>
      run(options, (context) => showInvoice(context, options)),
    );
  const reference = () =>
    new Option(
      "--reference <text>",
      "names it for good: the same one again changes nothing",
    ).makeOptionMandatory();
  one("pay")
    .description("record a payment, or that one was given back")
    .addOption(reference())
    .option("--amount <cents>", "what was paid; all that is open without it")
    .option("--paid-at <time>", "when, in UTC; now without it")
    .option("--reverse", "the payment of this reference was given back, or was none")
    .action((options: CommonOptions & PayOptions) => run(options, (context) => pay(context, options)));
  one("credit")
    .description("correct an invoice by a credit note, with its part of the taxes")
    .addOption(reference())
    .requiredOption("--reason <text>", "shown to the organization, 1 to 500 characters")
    .option("--amount <cents>", "without taxes; all that is not credited without it")
    .action((options: CommonOptions & CreditOptions) => run(options, (context) => credit(context, options)));
}

/** `organization country`, by which invoices are taxed. */
export function addCountryCommand(organization: Command, run: RunCommand): void {
  organization
    .command("country")
    .description("set the country by which its next invoices are taxed")
    .requiredOption("--organization <id>", "the organization's id")
    .requiredOption("--country <code>", "two capital letters (ISO 3166-1)")
    .addOption(json())
    .action((options: CommonOptions & { organization: string; country: string }) =>
      run(options, (context) => setCountry(context, options.organization, options.country)),
    );
}
