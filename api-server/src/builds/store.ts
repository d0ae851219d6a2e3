import {
  type Build,
  type BuildKey,
  type BuildListQuery,
  type BuildLogChunk,
  type BuildProject,
  type BuildRow,
  type BuildTrigger,
  claimBuildTrigger,
  findBuild,
  type GitDelivery,
  isGitDeliveryKnown,
  type Ledger,
  listBuilds,
  noteBuildTriggers,
  readBuildLog,
  recordBuild,
  recordGitDelivery,
} from "@slipway/ledger";
import { askLedger } from "../ledger-call.ts";

/** What is kept of builds. Everything throws Failure 503 when the ledger is away. */
export interface BuildStore {
  record(row: BuildRow): Promise<boolean>;
  find(build: BuildProject & { id: string }): Promise<Build | undefined>;
  list(query: BuildListQuery): Promise<{ total: number; builds: Build[] }>;
  readLog(build: BuildKey, page: { cursor: number; limit: number }): Promise<BuildLogChunk[]>;
  /** The id of the build that a trigger is of; null of one that was noted as having been there. */
  claim(trigger: BuildTrigger, buildId: string): Promise<string | null>;
  /** Notes triggers that shall set nothing off. */
  note(triggers: readonly BuildTrigger[]): Promise<void>;
  isDeliveryKnown(delivery: GitDelivery): Promise<boolean>;
  recordDelivery(delivery: GitDelivery): Promise<void>;
}

/** The ledger's. */
export function ledgerBuilds(ledger: Ledger): BuildStore {
  return {
    record: (row) => askLedger(() => recordBuild(ledger, row)),
    find: (build) => askLedger(() => findBuild(ledger, build)),
    list: (query) => askLedger(() => listBuilds(ledger, query)),
    readLog: (build, page) => askLedger(() => readBuildLog(ledger, build, page)),
    claim: (trigger, buildId) => askLedger(() => claimBuildTrigger(ledger, trigger, buildId)),
    note: (triggers) => askLedger(() => noteBuildTriggers(ledger, triggers)),
    isDeliveryKnown: (delivery) => askLedger(() => isGitDeliveryKnown(ledger, delivery)),
    recordDelivery: (delivery) => askLedger(() => recordGitDelivery(ledger, delivery)),
  };
}
