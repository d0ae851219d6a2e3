/** Whose children are applied. Pure. */

import { controllerReference } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import { projectResource } from "../resources.ts";

/** A project as the owner of its children, by which the applier finds them. */
export function ownerOf(project: Project) {
  return {
    label: { key: labels.project, value: project.metadata.name },
    reference: controllerReference(project, projectResource),
    namespace: project.metadata.namespace,
  };
}
