/** The commands of `slipway admin platform`: they run on the machine of a person with the cluster's kubeconfig. */

import { readFile, writeFile } from "node:fs/promises";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { SYSTEM_NAMESPACE } from "@slipway/crds";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { Command, Option } from "commander";
import { backUp } from "./backup.ts";
import type { Installation } from "./installation.ts";
import { reportTo } from "./report.ts";
import { inspect, restore } from "./restore.ts";

interface Options {
  namespace: string;
  json?: boolean;
}

/** @param out receives the result */
export function platformProgram(out: (text: string) => void, err: (text: string) => void): Command {
  const program = new Command("platform")
    .description("Backs up and restores the platform.")
    .showHelpAfterError();
  const namespace = () =>
    new Option("--namespace <name>", "where Slipway is installed").default(SYSTEM_NAMESPACE);
  const json = () => new Option("--json", "print exactly one JSON object");
  const identity = () =>
    new Option("--identity <file>", "file with the private key of age").makeOptionMandatory();
  const archiveOf = async (options: { from: string; identity: string }) => ({
    file: options.from,
    identity: await privateKey(options.identity),
  });
  const print = (result: object, options: { json?: boolean }) =>
    out(options.json ? `${JSON.stringify(result)}\n` : `${JSON.stringify(result, undefined, 2)}\n`);

  program
    .command("key")
    .description("make a private key of age, and print its public key")
    .requiredOption("--to <file>", "the private key's file; it must not exist")
    .addOption(json())
    .action(async (options: { to: string; json?: boolean }) => {
      const key = await generateIdentity();
      await writeFile(options.to, `${key}\n`, { flag: "wx", mode: 0o600 });
      print({ recipient: await identityToRecipient(key) }, options);
    });
  program
    .command("backup")
    .description("write custom resources, Secrets and the ledger to one encrypted file")
    .requiredOption("--to <file>", "the file; it must not exist")
    .requiredOption(
      "--recipient <key...>",
      "public key of age, age1...: its private key alone reads the file",
    )
    .addOption(namespace())
    .addOption(json())
    .action((options: Options & { to: string; recipient: string[] }) =>
      withInstallation(options, async (installation) => {
        const report = reportTo(err);
        const result = await backUp(installation, options.to, options.recipient, report);
        report(`written: keep ${options.to} and the private key in different places`);
        print(result, options);
      }),
    );
  program
    .command("show")
    .description("read all of a backup, and print what is in it")
    .requiredOption("--from <file>", "the file")
    .addOption(identity())
    .addOption(json())
    .action(async (options: Options & { from: string; identity: string }) => {
      const { id, createdAt, objects } = await inspect(await archiveOf(options));
      print({ id, createdAt, ...objects }, options);
    });
  program
    .command("restore")
    .description("restore a backup into a new installation of Slipway")
    .requiredOption("--from <file>", "the file")
    .addOption(identity())
    .addOption(namespace())
    .addOption(json())
    .action((options: Options & { from: string; identity: string }) =>
      withInstallation(options, async (installation) =>
        print(await restore(installation, await archiveOf(options), reportTo(err)), options),
      ),
    );
  return program;
}

async function withInstallation(
  { namespace }: Options,
  work: (installation: Installation) => Promise<void>,
): Promise<void> {
  const client = KubeClient.fromConfig(await loadClusterConfig(), { userAgent: "slipway-recovery" });
  try {
    await work({ client, namespace });
  } finally {
    await client.close();
  }
}

/** The one line of a file that is neither empty nor a comment, as `age-keygen` writes it. @throws Error when there is none */
async function privateKey(file: string): Promise<string> {
  const lines = (await readFile(file, "utf8")).split("\n").map((line) => line.trim());
  const keys = lines.filter((line) => line !== "" && !line.startsWith("#"));
  if (keys.length !== 1) {
    throw new Error(`${file} has ${keys.length} keys: it must have one, as age-keygen writes it`);
  }
  return keys[0] ?? "";
}
