/**
 * Versions of what pods' templates are made from. Kubernetes replaces every pod whose template differs: so what an upgrade of the operator would
 * render differently is a new version, and projects keep theirs until their next deployment.
 */

import type { ProjectStatus } from "@slipway/crds";

/** That of projects from before versions were recorded. */
export const FIRST_TEMPLATE_VERSION = 1;

/** The newest that this operator can render. It becomes the default of deployments a release later: one can go back to the release before. */
export const NEWEST_TEMPLATE_VERSION = 2;

/**
 * What a version added: nothing for the ones before.
 * @param workload whose version decides
 */
export function since<T extends object>(
  version: number,
  { templateVersion = FIRST_TEMPLATE_VERSION }: { templateVersion?: number },
  fields: T,
): T | Record<string, never> {
  return templateVersion >= version ? fields : {};
}

/**
 * A workload with the version by which its pods are made: the recorded one while they are to be as the newest deployment left them, else that of
 * new deployments. Pure.
 * @param hashOf hash of a workload's template
 * @param forNew version of new deployments
 */
export function withTemplateVersion<T extends object>(
  workload: T,
  {
    templateVersion = FIRST_TEMPLATE_VERSION,
    deployments: [newest] = [],
  }: Pick<ProjectStatus, "templateVersion" | "deployments">,
  hashOf: (workload: T & { templateVersion: number }) => string,
  forNew = FIRST_TEMPLATE_VERSION,
): T & { templateVersion: number } {
  // What a later release recorded cannot be rendered.
  const recorded = { ...workload, templateVersion: Math.min(templateVersion, NEWEST_TEMPLATE_VERSION) };
  const isSame =
    newest !== undefined && newest.status !== "superseded" && newest.settingsHash === hashOf(recorded);
  return isSame ? recorded : { ...workload, templateVersion: forNew };
}
