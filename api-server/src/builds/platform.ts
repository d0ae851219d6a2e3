import { type BaseImages, baseImages } from "@slipway/builder";
import { isForeignBuild } from "@slipway/crds";
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
  readBuildLog,
  recordBuild,
  recordBuildTriggers,
} from "@slipway/ledger";
import { parse } from "yaml";
import { z } from "zod";
import { failures } from "../errors/catalog.ts";
import { type DeliveryQueue, ledgerDeliveries } from "../git/delivery-queue.ts";
import type { EventStreams } from "../http/event-streams.ts";
import { withLedgerErrors } from "../ledger/availability.ts";

/** What the platform has for builds. */
export interface BuildPlatform {
  store: BuildStore;
  /** Whether this platform builds. */
  isOffered: () => boolean;
  /** The address under which Git servers reach the API, without a slash at its end; without one refs are only polled. */
  hookBase: string | undefined;
  /** PEM private key that signs tokens of the builds' registry; undefined where there is none. */
  registryKey: () => string | undefined;
  /** `host` or `host:port` of the builds' registry; undefined where nothing is built. */
  registryHost: () => string | undefined;
  /** The process's own, which logs of applications share. */
  streams: EventStreams;
}

/** @throws Failure 503 where nothing is built */
export function requireBuilds({ builds }: { builds: Pick<BuildPlatform, "isOffered"> }): void {
  if (!builds.isOffered()) {
    throw failures.projectFeatureUnavailable("building from a Git repository");
  }
}

/** What the API reads of the operator's settings of builds: the rest is the operator's. */
const settings = z.looseObject({
  baseImages: baseImages.default({}),
  registry: z.looseObject({ host: z.string().optional() }).default({}),
});

/** What the API knows of how projects are built. */
export interface BuildSettings {
  baseImages: BaseImages;
  registryHost: string | undefined;
}

/** Reads the file that `SLIPWAY_BUILDS_FILE` names. @throws Error that lists what is wrong */
export function parseBuildSettings(text: string): BuildSettings {
  const result = settings.safeParse(parse(text) ?? {});
  if (!result.success) {
    throw new Error(`no valid settings of builds:\n${z.prettifyError(result.error)}`);
  }
  return { baseImages: result.data.baseImages, registryHost: result.data.registry.host };
}

/** What is kept of builds. Everything throws Failure 503 when the ledger is unavailable. */
export interface BuildStore {
  record(row: BuildRow): Promise<boolean>;
  find(build: BuildProject & { id: string }): Promise<Build | undefined>;
  list(query: BuildListQuery): Promise<{ total: number; builds: Build[] }>;
  readLog(build: BuildKey, page: { cursor: number; limit: number }): Promise<BuildLogChunk[]>;
  /** The id of the build that a trigger is of; null of one that was noted as present, more than ten minutes ago. */
  claim(trigger: BuildTrigger, buildId: string): Promise<string | null>;
  /** Notes triggers that shall set nothing off. */
  recordTriggers(triggers: readonly BuildTrigger[]): Promise<void>;
  /** Deliveries of hooks, from their answer until they are processed. */
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
    recordTriggers: (triggers) => withLedgerErrors(() => recordBuildTriggers(ledger, triggers)),
    deliveries: ledgerDeliveries(ledger),
  };
}

/**
 * Refuses an image that was built for another organization; the operator would refuse to run it.
 * @param field how the operation's body calls the image
 * @throws Failure 400 that names the field
 */
export function refuseForeignImage(
  image: string | undefined,
  field: string,
  organizationId: string,
  { builds }: { builds: Pick<BuildPlatform, "registryHost"> },
): void {
  if (image === undefined || !isForeignBuild(image, organizationId, builds.registryHost())) {
    return;
  }
  const message = "is in the platform's registry of builds and not this organization's";
  throw failures.validation([{ field, message }]);
}
