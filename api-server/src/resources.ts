import { customResource } from "@slipway/controller-runtime";
import { GROUP, plurals, VERSION } from "@slipway/crds";

/** Where the custom resources are served. */
export const gitConnectionResource = customResource(GROUP, VERSION, plurals.GitConnection, "GitConnection");
export const deletedProjectResource = customResource(
  GROUP,
  VERSION,
  plurals.DeletedProject,
  "DeletedProject",
);
export const variableGroupResource = customResource(GROUP, VERSION, plurals.VariableGroup, "VariableGroup");
export const logDrainResource = customResource(GROUP, VERSION, plurals.LogDrain, "LogDrain");
export const backupResource = customResource(GROUP, VERSION, plurals.Backup, "Backup");
export const buildResource = customResource(GROUP, VERSION, plurals.Build, "Build");
export const projectResource = customResource(GROUP, VERSION, plurals.Project, "Project");
export const jobRunResource = customResource(GROUP, VERSION, plurals.JobRun, "JobRun");
export const domainClaimResource = customResource(GROUP, VERSION, plurals.DomainClaim, "DomainClaim", false);
