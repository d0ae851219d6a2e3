import type { ProjectType } from "@slipway/crds";

/** The types of project that are backed up. The day that an engine's backups work, it is added here. */
export const backedUpTypes: readonly ProjectType[] = ["postgresql", "mariadb", "valkey"];
