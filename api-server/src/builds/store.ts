import {
  type Build,
  type BuildKey,
  type BuildListQuery,
  type BuildLogChunk,
  type BuildProject,
  type BuildRow,
  type BuildTrigger,
  claimDeliveredTrigger,
  findBuild,
  type Ledger,
  listBuilds,
  noteBuildTriggers,
  readBuildLog,
  recordBuild,
} from "@slipway/ledger";
import { type DeliveryQueue, ledgerDeliveries } from "../git/delivery-queue.ts";
import { withLedgerErrors } from "../ledger/availability.ts";

/** What is kept of builds. Everything throws Failure 503 when the ledger is unavailable. */
export interface BuildStore {
  record(row: BuildRow): Promise<boolean>;
  find(build: BuildProject & { id: string }): Promise<Build | undefined>;
  list(query: BuildListQuery): Promise<{ total: number; builds: Build[] }>;
  readLog(build: BuildKey, page: { cursor: number; limit: number }): Promise<BuildLogChunk[]>;
  /** The id of the build that a trigger is of; null of one that was noted as present, more than ten minutes ago. */
  claim(trigger: BuildTrigger, buildId: string): Promise<string | null>;
  /** Notes triggers that shall set nothing off. */
  note(triggers: readonly BuildTrigger[]): Promise<void>;
  /** Deliveries of hooks, from their answer until they are worked off. */
  deliveries: DeliveryQueue;
}

/** The ledger's. */
export function ledgerBuilds(ledger: Ledger): BuildStore {
  return {
    record: (row) => withLedgerErrors(() => recordBuild(ledger, row)),
    find: (build) => withLedgerErrors(() => findBuild(ledger, build)),
    list: (query) => withLedgerErrors(() => listBuilds(ledger, query)),
    readLog: (build, page) => withLedgerErrors(() => readBuildLog(ledger, build, page)),
    claim: (trigger, buildId) => withLedgerErrors(() => claimDeliveredTrigger(ledger, trigger, buildId)),
    note: (triggers) => withLedgerErrors(() => noteBuildTriggers(ledger, triggers)),
    deliveries: ledgerDeliveries(ledger),
  };
}
