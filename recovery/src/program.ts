/** The commands of `slipway admin platform`: they run on the machine of a person with the cluster's kubeconfig. */

import { writeFile } from "node:fs/promises";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { SYSTEM_NAMESPACE } from "@slipway/crds";
import { generateIdentity, identityToRecipient } from "age-encryption";
import { Command, InvalidArgumentError, Option } from "commander";
import { nameIn, openLocation } from "./archive/location.ts";
import { createdAtOf, type Retention } from "./archive/name.ts";
import { backUp, removeExpired } from "./backup.ts";
import { readIdentity } from "./identity.ts";
import type { Installation } from "./installation.ts";
import { reportTo } from "./report.ts";
import { type Archive, inspect, restore } from "./restore.ts";

interface Options {
  namespace: string;
  json?: boolean;
}
interface BackupOptions {
  to: string;
  recipient: string[];
  retentionDays?: Retention["days"];
  keepAtLeast: Retention["keepAtLeast"];
}

const LOCATION = "a file, a folder, or s3://BUCKET/PREFIX/ (endpoint and keys from AWS_* variables)";

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
  const archiveOf = async (options: {
    from: string;
    identity: string;
  }): Promise<Archive & { name: string }> => {
    const location = await openLocation(options.from, process.env);
    const [name, identity] = [await nameIn(location), await readIdentity(options.identity)];
    return { name, read: () => location.storage.read(name), identity };
  };
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
    .requiredOption("--to <location>", `${LOCATION}; the file or object must not exist`)
    .requiredOption(
      "--recipient <key...>",
      "public key of age, age1...: its private key alone reads the file",
    )
    .option("--retention-days <number>", "then delete backups there that are older", wholeNumber)
    .option("--keep-at-least <number>", "newest backups that stay although they are older", wholeNumber, 1)
    .addOption(namespace())
    .addOption(json())
    .action((options: Options & BackupOptions) =>
      withInstallation(options, async (installation) => {
        const report = reportTo(err);
        const to = await openLocation(options.to, process.env);
        const result = await backUp(installation, to, options.recipient, report);
        const { retentionDays: days, keepAtLeast } = options;
        const removed =
          days === undefined ? [] : await removeExpired(to.storage, { days, keepAtLeast }, new Date());
        report(`written: keep ${result.file} and the private key in different places`);
        print(days === undefined ? result : { ...result, removed }, options);
      }),
    );
  program
    .command("backups")
    .description("list the backups in a folder or a bucket, oldest first")
    .requiredOption("--in <location>", "s3://BUCKET/PREFIX/ or a folder")
    .addOption(json())
    .action(async (options: { in: string; json?: boolean }) => {
      const { storage } = await openLocation(options.in, process.env);
      const backups = (await storage.list())
        .flatMap(({ name, size }) => {
          const createdAt = createdAtOf(name)?.toISOString();
          return createdAt === undefined ? [] : [{ name, createdAt, bytes: size }];
        })
        .toSorted((a, b) => (a.name < b.name ? -1 : 1));
      print({ place: storage.place, backups }, options);
    });
  program
    .command("show")
    .description("read all of a backup, and print what is in it")
    .requiredOption("--from <location>", `${LOCATION}; the newest backup of a folder or prefix`)
    .addOption(identity())
    .addOption(json())
    .action(async (options: Options & { from: string; identity: string }) => {
      const archive = await archiveOf(options);
      const { id, createdAt, objects, ledgerRows } = await inspect(archive);
      print({ name: archive.name, id, createdAt, ...objects, ledgerRows }, options);
    });
  program
    .command("restore")
    .description("restore a backup into a new installation of Slipway")
    .requiredOption("--from <location>", `${LOCATION}; the newest backup of a folder or prefix`)
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

function wholeNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text)) {
    throw new InvalidArgumentError("must be a whole number");
  }
  return Number(text);
}
