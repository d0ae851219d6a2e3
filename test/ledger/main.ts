/**
 * `node test/ledger/main.ts [--rounds 3]`: installs a stack whose ledger has one instance, makes two of it while rows are written, and
 * lets the primary fail again and again, and makes one of them; prints for how long nothing was written, and whether every acknowledged row is there. What
 * the stack had before is lost, and none is left. Leaves `.slipway/logs/ledger/report.md` and `.json`; exits 1 when anything is lost.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { run } from "../../hack/lib/exec.ts";
import { confDir, root, toolDir } from "../../hack/lib/paths.ts";
import { systemNamespace } from "../../hack/stack/chart.ts";
import { writeReport } from "../../hack/testing/reports.ts";
import { testedCommit } from "../../hack/testing/summary.ts";
import { faults, markdown, type Results, type Round } from "./report.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
const log = (line: string) => console.log(`ledger: ${line}`);
const folder = await mkdtemp(join(tmpdir(), "slipway-ledger-"));
const twoInstances = join(folder, "values.yaml");
await writeFile(twoInstances, stringify({ ledger: { embedded: { instances: 2 } } }));

const install = (environment: Record<string, string> = {}) =>
  run("bash", ["hack/up.sh", "--builds", "off", "--databases", "none"], {
    cwd: root,
    env: { SLIPWAY_RATE_LIMIT_SCALE: "100", ...environment },
  });
const purge = () => run("bash", ["hack/down.sh", "--purge"], { cwd: root });
/** What the chart does with the values of the last installation, without what comes before it. */
const upgrade = () =>
  run(join(toolDir, "helm"), [
    ...[
      "upgrade",
      "slipway",
      join(root, "charts/slipway"),
      "-n",
      systemNamespace,
      "--wait",
      "--timeout",
      "5m",
    ],
    ...["-f", join(confDir, "values.yaml"), "--kubeconfig", join(root, ".slipway/kubeconfig")],
  ]);
const kubectl = (...args: string[]) =>
  run(join(root, ".slipway/bin/kubectl"), ["--kubeconfig", join(root, ".slipway/kubeconfig"), ...args]);
const slipway = (...args: string[]) =>
  run("npm", ["run", "--silent", "slipway", "--", "admin", "platform", ...args, "--json"], { cwd: root });

/** The documented commands run as an administrator's. */
const documented = {
  cwd: root,
  env: { PATH: `${toolDir}:${process.env.PATH}`, KUBECONFIG: join(root, ".slipway/kubeconfig") },
};

/** The commands of docs/ledger.md, before and after the upgrade. @param isSwitched whether the second instance is the primary */
async function wayBack(isSwitched: boolean): Promise<{ before: string; after: string }> {
  const page = await readFile(join(root, "docs/ledger.md"), "utf8");
  const [, block = ""] = /^### From two to one\n\n```sh\n(.*?)^```$/ms.exec(page) ?? [];
  const lines = block.split("\n").filter((line) => isSwitched || !line.includes(" switchover "));
  const at = lines.findIndex((line) => line.startsWith("helm upgrade "));
  if (at < 0) {
    throw new Error("docs/ledger.md does not say how two instances become one");
  }
  return { before: lines.slice(0, at).join("\n"), after: lines.slice(at + 1).join("\n") };
}

/** Bytes of the ledger in a backup of the platform. */
async function backUp(): Promise<number> {
  const { recipient } = JSON.parse(await slipway("key", "--to", join(folder, "key"))) as {
    recipient: string;
  };
  const made = await slipway("backup", "--to", join(folder, "platform.age"), "--recipient", recipient);
  return (JSON.parse(made) as { ledgerBytes: number }).ledgerBytes;
}

await purge();
try {
  log("a stack with one instance");
  await install();
  // They read the stack's file when they are imported.
  const { longestGap, lostRows, secondPrimaries } = await import("../e2e/support/acknowledged.ts");
  const { befallings, members, untilSynchronous } = await import("./members.ts");
  const writing = await import("./writers.ts");
  const { apiClient, createProject, httpProject } = await import("../e2e/support/api.ts");
  const { project_id: project } = await createProject(apiClient(), httpProject("ledger"));

  const ledger = await writing.openLedger();
  const [byPackage, byApi] = [writing.packageWriter(ledger), writing.apiWriter(project)];
  const rounds: Round[] = [];
  /** Something that befalls the ledger while it is written to, until both instances have everything again. */
  const round = async (
    fault: string,
    befall: () => Promise<unknown>,
    untilBack: () => Promise<unknown> = untilSynchronous,
  ) => {
    await Promise.all([byPackage.untilWrites(), byApi.untilWrites()]);
    const began = performance.now();
    await befall();
    await untilBack();
    await Promise.all([byPackage.untilWrites(), byApi.untilWrites()]);
    const [ledgerGap, apiGap] = [byPackage, byApi].map(({ acknowledged }) =>
      longestGap(writing.since(acknowledged, began)),
    );
    rounds.push({ fault, ledgerGap: ledgerGap ?? 0, apiGap: apiGap ?? 0 });
    log(`${fault}: ${Math.round(ledgerGap ?? 0)} ms without a row, ${Math.round(apiGap ?? 0)} ms of /v1`);
  };

  let before = 0;
  const refusal = await install({ SLIPWAY_VALUES: twoInstances }).then(() => "", String);
  if (!refusal.includes("delete statefulset slipway-ledger")) {
    throw new Error(`two instances are not refused while the StatefulSet of one is there: ${refusal}`);
  }
  await round("one instance becomes two", async () => {
    before = byPackage.acknowledged.length;
    await kubectl("-n", systemNamespace, "delete", "statefulset", "slipway-ledger");
    await upgrade();
  });
  const kept = await writing.packageRows(ledger);
  const after = byPackage.acknowledged.slice(0, before).filter(({ id }) => kept.has(id)).length;

  await writing.atPrimary("create table rows (id bigint primary key, by text)");
  const byMember = members.map(writing.memberWriter);
  for (let turn = 0; turn < Number(values.rounds); turn += 1) {
    for (const [fault, befall] of Object.entries(befallings)) {
      await round(fault, async () => befall(await untilSynchronous()));
    }
  }
  await Promise.all(byMember.map((writer) => writer.stop()));
  const backupBytes = await backUp();
  const ofMembers = new Set(
    (await writing.atPrimary<{ id: string }>("select id from rows")).map(({ id }) => Number(id)),
  );

  await round(
    "two instances become one",
    async () => {
      const way = await wayBack((await untilSynchronous()) !== members[0]);
      await run("bash", ["-euc", way.before], documented);
      await install();
      await byPackage.untilWrites();
      await run("bash", ["-euc", way.after], documented);
    },
    byPackage.untilWrites.bind(byPackage),
  );
  await Promise.all([byPackage, byApi].map((writer) => writer.stop()));

  const ofPackage = await writing.packageRows(ledger);
  const written = byMember.flatMap(({ acknowledged }) => acknowledged);
  const results: Results = {
    commit: await testedCommit(),
    rounds,
    rows: [
      {
        writer: "the ledger's package",
        acknowledged: byPackage.acknowledged.length,
        lost: lostRows(byPackage.acknowledged, ofPackage).length,
      },
      {
        writer: "one session at each instance",
        acknowledged: written.length,
        lost: lostRows(written, ofMembers).length,
      },
      {
        writer: "/v1, by its audit log",
        acknowledged: byApi.acknowledged.length,
        lost: Math.max(0, byApi.acknowledged.length - (await writing.auditedRenames(ledger, project))),
      },
    ],
    secondPrimaries: secondPrimaries(written).length,
    converted: { before, after },
    backupBytes,
  };
  await ledger.destroy();
  await writeReport("ledger", results, markdown(results));
  process.exitCode = faults(results).length > 0 ? 1 : 0;
} finally {
  await purge();
  await rm(folder, { recursive: true });
}
