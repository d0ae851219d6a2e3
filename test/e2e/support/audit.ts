import { open, stat } from "node:fs/promises";
import { join } from "node:path";

const file = join(import.meta.dirname, "../../../.slipway/logs/audit.log");
const writeVerbs = new Set(["create", "update", "patch", "delete", "deletecollection"]);

/** The part of an audit.k8s.io/v1 Event that is read here. */
interface AuditEvent {
  readonly verb: string;
  readonly stage: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
}

/** Where the apiserver's audit log ends now, in bytes; a later `writesSince` reads on from there. */
export const auditPosition = async (): Promise<number> => (await stat(file)).size;

/**
 * Every write that a service account made since `position`, as `verb resource namespace/name`, without the leader's
 * Lease and requested tokens, which are stored nowhere. The apiserver itself wrote this log, so nothing that reached it is missing.
 */
export async function writesSince(position: number, username: string): Promise<string[]> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    if (size < position) {
      throw new Error("the audit log was rotated meanwhile: measure again");
    }
    const buffer = Buffer.alloc(size - position);
    await handle.read(buffer, 0, buffer.length, position);
    const lines = buffer.toString("utf8").split("\n");
    lines.pop();
    return lines
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as AuditEvent)
      .filter(
        (event) =>
          event.stage === "ResponseComplete" &&
          event.user.username === username &&
          writeVerbs.has(event.verb) &&
          event.objectRef?.resource !== "leases" &&
          event.objectRef?.subresource !== "token",
      )
      .map(
        ({ verb, objectRef }) =>
          `${verb} ${objectRef?.resource} ${objectRef?.namespace ?? ""}/${objectRef?.name ?? ""}`,
      );
  } finally {
    await handle.close();
  }
}
