import type { KubeClient, KubernetesObject } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { expect, test } from "vitest";
import { dumpLedger, loadLedger, primaryPod, rowsOfLedger } from "./ledger.ts";

type Options = Parameters<KubeClient["podExec"]>[1];

/** A pod of the ledger; with a role where there are two. */
const pod = (ordinal: number, role?: "primary" | "replica"): KubernetesObject => ({
  metadata: { name: `slipway-ledger-${ordinal}`, labels: role ? { [labels.role]: role } : {} },
});

/** A place whose pods are these, and whose ledger answers as given. */
const place = (
  exec: (options: Options) => Promise<{ exitCode: number; stdout: string; stderr: string }>,
  pods = [pod(0)],
) => ({
  client: {
    listAll: async () => pods,
    podExec: (_: unknown, options: Options) => exec(options),
  } as unknown as KubeClient,
  namespace: "slipway-system",
});
const ok = { exitCode: 0, stdout: "", stderr: "" };

async function dumped(chunks: Buffer[], result = ok): Promise<string[]> {
  const pieces: string[] = [];
  const from = place(async ({ onStdout }) => {
    for (const chunk of chunks) {
      await onStdout?.(chunk);
    }
    return result;
  });
  for await (const piece of dumpLedger(from)) {
    pieces.push(piece);
  }
  return pieces;
}

test("rows of a ledger are those of all its tables that show that it was used", async () => {
  let statement = "";
  const from = place(async ({ stdin }) => {
    for await (const piece of stdin ?? []) {
      statement += String(piece);
    }
    return { ...ok, stdout: "0\n2\n40\n" };
  });
  expect(await rowsOfLedger(from as never)).toBe(42);
  for (const table of ["deployments", "charges", "plan_charges", "invoices", "credit_notes"]) {
    expect(statement).toContain(`'${table}'`);
  }
});

test("a dump comes in pieces of whole lines, whatever the chunks were", async () => {
  const line = `${"ü".repeat(70_000)}\n`;
  const bytes = Buffer.from(line.repeat(9));
  const chunks = Array.from({ length: Math.ceil(bytes.length / 9_999) }, (_, index) =>
    bytes.subarray(index * 9_999, (index + 1) * 9_999),
  );
  const pieces = await dumped(chunks);
  expect(pieces.join("")).toBe(line.repeat(9));
  expect(pieces.length).toBeGreaterThan(1);
  expect(pieces.every((piece) => piece.endsWith("\n"))).toBe(true);
});

test("a dump that fails in the middle is not taken for a whole one", async () => {
  const failed = { exitCode: 1, stdout: "", stderr: "pg_dump: error: no space left" };
  await expect(dumped([Buffer.from("begin;\n")], failed)).rejects.toThrow("no space left");
});

test("all of the ledger is replaced in one transaction", async () => {
  let input = "";
  let command: readonly string[] = [];
  const to = place(async (options) => {
    command = options.command;
    for await (const chunk of options.stdin as AsyncIterable<Buffer>) {
      input += chunk.toString();
    }
    return ok;
  });
  async function* sql() {
    yield "create table a (b int);\n";
  }
  await loadLedger(to, sql());
  expect(input).toBe("drop schema public cascade;\ncreate schema public;\ncreate table a (b int);\n");
  expect(command.join(" ")).toContain("--single-transaction --set ON_ERROR_STOP=1");
});

test("without a pod of the embedded ledger the error says what to do", async () => {
  const read = async () => {
    for await (const _ of dumpLedger(place(async () => ok, []))) {
      // Nothing comes.
    }
  };
  await expect(read()).rejects.toThrow("ledger.url");
});

test("of two instances the primary is read, and never one that only follows", () => {
  expect(primaryPod([pod(0)])).toBe("slipway-ledger-0");
  expect(primaryPod([pod(0, "replica"), pod(1, "primary")])).toBe("slipway-ledger-1");
  for (const pods of [[pod(0, "replica")], [pod(0, "replica"), pod(1, "replica")], [pod(0), pod(1)]]) {
    expect(() => primaryPod(pods)).toThrow("no instance of the ledger is the primary");
  }
});
