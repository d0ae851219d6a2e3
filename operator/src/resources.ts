/** Slipway's own kinds, and those of others that it writes. */

import { customResource } from "@slipway/controller-runtime";
import { GROUP, plurals, VERSION } from "@slipway/crds";

export const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
export const jobRunResource = customResource(GROUP, VERSION, plurals.JobRun, "JobRun");
export const buildResource = customResource(GROUP, VERSION, plurals.Build, "Build");
export const gitConnectionResource = customResource(GROUP, VERSION, plurals.GitConnection, "GitConnection");
export const deletedProjectResource = customResource(
  GROUP,
  VERSION,
  plurals.DeletedProject,
  "DeletedProject",
);
export const variableGroupResource = customResource(GROUP, VERSION, plurals.VariableGroup, "VariableGroup");
export const backupResource = customResource(GROUP, VERSION, plurals.Backup, "Backup");
export const domainClaimResource = customResource(GROUP, VERSION, plurals.DomainClaim, "DomainClaim", false);

/** Traefik's own kind, served only where its definitions are installed. */
export const middlewareResource = customResource("traefik.io", "v1alpha1", "middlewares", "Middleware");
