import { readFile } from "node:fs/promises";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { type Catalog, parseCatalog } from "@slipway/crds";
import { type AuditKey, beginAudits, connectLedger, finishAudits, type Ledger } from "@slipway/ledger";
import { readTokenKey, type TokenKey } from "../auth/credentials.ts";

/** Connections to the ledger: commands beyond that wait for one. */
const MAX_CONNECTIONS = 4;

/** What the admin commands work with. Token key, cluster and catalog are opened only by the commands that need them. */
export interface AdminContext {
  ledger: Ledger;
  tokenKey: () => TokenKey;
  kube: () => Promise<KubeClient>;
  /** The current plan catalog. */
  catalog: () => Promise<Catalog>;
  /** The environment, for settings of one command alone. */
  env: Readonly<Record<string, string | undefined>>;
  /** Shown to the person who runs the command, on standard error. */
  warn: (line: string) => void;
  /** How far a command is, which is shown while it runs; where that cannot be, nothing is. */
  progress?: ((line: string) => void) | undefined;
  /** How long a command may take, in milliseconds; where that is known. */
  timeoutMs?: number | undefined;
}

/** What every command of a process shares. */
export interface SharedContext extends Omit<AdminContext, "warn"> {
  close: () => Promise<void>;
}

/** A mistake in the command's arguments; shown without a stack trace. */
export class AdminError extends Error {
  override readonly name = "AdminError";
}

/** @throws AdminError when the ledger's address is not set */
export function openAdminContext(
  env: NodeJS.ProcessEnv,
  onIdleError: (error: Error) => void = () => {},
): SharedContext {
  const url = env.SLIPWAY_LEDGER_URL;
  if (!url) {
    throw new AdminError("SLIPWAY_LEDGER_URL is not set: run this in the pod of slipway-admin");
  }
  const options = { applicationName: "slipway-admin", maxConnections: MAX_CONNECTIONS, onIdleError };
  const ledger = connectLedger({ url, ...options });
  let kube: Promise<KubeClient> | undefined;
  return {
    ledger,
    tokenKey: () => {
      const file = env.SLIPWAY_TOKEN_KEY_FILE;
      if (!file) {
        throw new AdminError("SLIPWAY_TOKEN_KEY_FILE is not set");
      }
      return readTokenKey(file);
    },
    kube: () => {
      kube ??= openKube().catch((error: unknown) => {
        // The next command reads the configuration again.
        kube = undefined;
        throw error;
      });
      return kube;
    },
    catalog: async () => {
      const file = env.SLIPWAY_CATALOG_FILE;
      if (!file) {
        throw new AdminError("SLIPWAY_CATALOG_FILE is not set");
      }
      return parseCatalog(await readFile(file, "utf8"));
    },
    env,
    close: async () => {
      await (await kube)?.close();
      await ledger.destroy();
    },
  };
}

const openKube = async (): Promise<KubeClient> =>
  KubeClient.fromConfig(await loadClusterConfig(), { userAgent: "slipway" });

/**
 * Runs an admin command with its row in the audit log, written before anything changes.
 * @throws what the command throws, or the ledger
 */
export async function audited(
  { ledger }: AdminContext,
  intent: { operation: string; organizationId: string | null },
  work: () => Promise<object>,
): Promise<object> {
  const [key] = await beginAudits(ledger, [{ ...intent, actor: "admin", projectId: null, sourceIp: null }]);
  const finish = (status: number, code: string | null, organizationId: string | null = null) => {
    const outcome = { status, code, projectId: null, organizationId, finishedAt: new Date() };
    return finishAudits(ledger, [{ key: key as AuditKey, ...outcome }]);
  };
  try {
    const result = await work();
    const { organization_id: organizationId } = result as { organization_id?: string };
    await finish(200, null, organizationId);
    return result;
  } catch (error) {
    // The row stays without an outcome when the ledger is what failed.
    const outcome = error instanceof AdminError ? finish(400, "ADMIN_REFUSED") : finish(500, "ADMIN_FAILED");
    await outcome.catch(() => undefined);
    throw error;
  }
}
