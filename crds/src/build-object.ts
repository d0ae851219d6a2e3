import type { Build, BuildSpec } from "./build.ts";
import { API_VERSION, labels, MANAGED_BY, organizationOfNamespace } from "./names.ts";
import type { Project } from "./project/index.ts";
import { sourceRevision } from "./source-revision.ts";

/** What a build is asked for with; without a commit it is of the branch's newest one when it is fetched. */
export type BuildRequest = Pick<BuildSpec, "triggeredBy" | "branch" | "tag" | "commitSha">;

/** The object by which a build is asked for: a copy of the project's source as it is now. Pure. */
export function buildObject(project: Project, id: string, request: BuildRequest, now: Date): Build {
  const { namespace, name, uid = "" } = project.metadata;
  const { source, build, github } = project.spec;
  const { triggeredBy, commitSha, branch, tag } = request;
  return {
    apiVersion: API_VERSION,
    kind: "Build",
    metadata: {
      name: id,
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationOfNamespace(namespace ?? "") ?? "",
        [labels.project]: name,
      },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: "Project", name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: {
      projectRef: { name },
      triggeredBy,
      requestedAt: now.toISOString(),
      ...(branch === undefined ? {} : { branch }),
      ...(tag === undefined ? {} : { tag }),
      ...(commitSha === undefined ? {} : { commitSha }),
      sourceRevision: sourceRevision(project),
      ...(source === undefined ? {} : { source }),
      ...(source === undefined || build === undefined ? {} : { build }),
      ...(github === undefined ? {} : { github }),
    },
  };
}
