import { setTimeout as sleep } from "node:timers/promises";
import {
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  type KubeClient,
  KubeError,
  mergePatch,
} from "@slipway/controller-runtime";
import {
  type DomainClaim,
  fieldManagers,
  type Project,
  type ProjectSpec,
  projectSpec,
  renderMessage,
  snakeCase,
  transitionIssues,
} from "@slipway/crds";
import { ConcurrencyLimiter } from "@slipway/process";
import { withDeadline } from "../concurrency.ts";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { fieldName } from "../http/validate.ts";
import { projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import type { ApiProject } from "./api-project.ts";
import { claimHostnames, deleteClaims, hostnamesOf } from "./claims.ts";
import { refusedByRule } from "./spec-errors.ts";

/** Changes the spec of a project: reads live, validates, claims new hostnames, writes. */

/** What a change works with. */
export type ChangeServices = Pick<Services, "kube" | "projects" | "domainZone" | "now">;

export interface ChangeOptions {
  /**
   * How the operation's body calls a path of the spec, such as `{"image.url": "image"}`; the longest path counts. Else it
   * is the path in snake_case.
   */
  fields?: Readonly<Record<string, string>>;
  /**
   * What must exist before the spec refers to it, such as Secrets or quota; may throw a Failure. Runs before every try to
   * write, so more than once when the project is written concurrently, and not at all when nothing changes. `kube` ends
   * with the change's own time.
   */
  prepare?: (wanted: Project, live: Project, kube: KubeClient) => Promise<void>;
}

export interface Change {
  /** The project after it, as the next read shows it. */
  project: ApiProject;
  /** The project as it stood live before. */
  before: Project;
  /** False when the spec was as desired, and nothing was written. */
  changed: boolean;
}

/** The tries of one change, when others keep writing to the same project: the operator, `kubectl`, another replica. */
const ATTEMPTS = 20;
/** How long a change may take in all, and how much of that it may wait for those of the same project before it. */
const LIMIT_MS = 20_000;
const QUEUE_LIMIT_MS = 10_000;
/** Changes of one project in this process follow one another instead of meeting in conflicts. */
const byProject = new ConcurrencyLimiter({
  perKey: 1,
  waitMs: QUEUE_LIMIT_MS,
  refuse: () => failures.clusterUnavailable(new Error("earlier changes of the project take too long")),
});

/**
 * Changes a project's spec: the only way in which routes do so. Reads live, calls `change` for the whole desired spec
 * (which must not change what it is given), validates it by every rule of the resource, claims the hostnames that are
 * new in it, and writes only what differs, provided that the project was not written meanwhile; else it tries again. Once it resolves,
 * reads on every replica show the change. The operator removes what the change no longer uses (Secrets, hostnames).
 *
 * @param change pure, since it may run more than once; throws a Failure to refuse by what is live
 * @throws Failure 404 when the project is deleted; 409 when it is being deleted, or another project has a hostname; 400 when
 *   a rule is broken; 503 when the cluster does not answer, at the latest after {@link LIMIT_MS}
 */
export function changeProject(
  { resource: { metadata } }: ApiProject,
  services: ChangeServices,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions = {},
): Promise<Change> {
  const ref = { namespace: metadata.namespace, name: metadata.name };
  return withDeadline(LIMIT_MS, (signal) => {
    const bounded = { ...services, kube: services.kube.until(signal) };
    const work = () => changeRef(ref, bounded, change, options);
    return byProject.run(`${ref.namespace}/${ref.name}`, work);
  });
}

async function changeRef(
  ref: { namespace: string | undefined; name: string },
  services: ChangeServices,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  options: ChangeOptions,
): Promise<Change> {
  const tries: Tries = { claimed: [], live: undefined };
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (attempt > 0) {
        await sleep(Math.random() * 20 * attempt);
      }
      try {
        tries.live = await services.kube.get<Project>(projectResource, ref);
        return await changeLive(tries.live, services, change, options, tries);
      } catch (error) {
        if (!isConflict(error)) {
          throw error;
        }
      }
    }
    throw failures.clusterUnavailable(new Error("the project changes without end"));
  } catch (error) {
    await undo(tries, error, services);
    throw toFailure(error, options.fields);
  }
}

/** What the tries of one change leave behind when none succeeds. */
interface Tries {
  /** Claims that were created ahead of the spec. */
  claimed: DomainClaim[];
  live: Project | undefined;
}

async function changeLive(
  live: Project,
  services: ChangeServices,
  change: (spec: ProjectSpec, live: Project) => ProjectSpec,
  { fields = {}, prepare }: ChangeOptions,
  tries: Tries,
): Promise<Change> {
  if (live.metadata.deletionTimestamp !== undefined) {
    throw failures.projectAlreadyDeleted();
  }
  const wanted: Project = { ...live, spec: change(live.spec, live) };
  const spec = mergePatch(live.spec, wanted.spec);
  if (spec === undefined) {
    return { project: await services.projects.observe(live), before: live, changed: false };
  }
  const errors = specErrors(wanted.spec, live.spec, fields);
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  await prepare?.(wanted, live, services.kube);
  tries.claimed.push(...(await claimNew(live, wanted, services)));
  const written = await write(live, spec, services);
  return { project: await services.projects.observe(written), before: live, changed: true };
}

/** Claims the hostnames that are new in the desired spec. */
async function claimNew(
  live: Project,
  wanted: Project,
  { kube, domainZone, now }: ChangeServices,
): Promise<DomainClaim[]> {
  const present = new Set(hostnamesOf(live, domainZone).map(({ hostname }) => hostname));
  const added = hostnamesOf(wanted, domainZone).filter(({ hostname }) => !present.has(hostname));
  const ahead = { generation: (live.metadata.generation ?? 0) + 1, at: now() };
  try {
    return await claimHostnames(kube, live, added, ahead);
  } catch (error) {
    throw error instanceof KubeError ? failures.addressNotAssigned(error) : error;
  }
}

/** Deletes claims after a refusal. A write without an answer may be done: then the operator decides. */
async function undo({ claimed, live }: Tries, error: unknown, services: ChangeServices): Promise<void> {
  if (error instanceof KubeError && (error.status === 0 || error.status >= 500)) {
    return;
  }
  const wanted = live ? hostnamesOf(live, services.domainZone).map(({ hostname }) => hostname) : [];
  const unwanted = claimed.filter(({ metadata }) => !wanted.includes(metadata.name));
  await deleteClaims(services.kube, unwanted);
}

function write(live: Project, spec: object, { kube, now }: ChangeServices): Promise<Project> {
  const { namespace, name, uid, resourceVersion } = live.metadata;
  const patch = { metadata: { uid, resourceVersion }, spec: { ...spec, updatedAt: now().toISOString() } };
  return kube.patch<Project>(projectResource, { namespace, name }, patch, {
    fieldManager: fieldManagers.api,
  });
}

/** Every rule that the desired spec breaks, or the transition to it from the one before. Pure. */
export function specErrors(
  wanted: ProjectSpec,
  before: ProjectSpec,
  fields: Readonly<Record<string, string>> = {},
): FieldError[] {
  const parsed = projectSpec.safeParse(wanted);
  const issues = parsed.success ? transitionIssues(projectSpec, wanted, before) : parsed.error.issues;
  return issues.map((issue) => {
    const template =
      "template" in issue ? issue.template : (issue as { params?: { template?: string } }).params?.template;
    return {
      field: bodyField(issue.path, fields),
      message:
        template === undefined
          ? issue.message
          : renderMessage(template, (path) => bodyField(path.split("."), fields)),
    };
  });
}

function bodyField(path: readonly PropertyKey[], fields: Readonly<Record<string, string>>): string {
  for (let length = path.length; length > 0; length -= 1) {
    const named = fields[path.slice(0, length).map(String).join(".")];
    if (named !== undefined) {
      return fieldName([named, ...path.slice(length).map(spelled)], "body");
    }
  }
  return fieldName(path.map(spelled), "body");
}

const spelled = (part: PropertyKey): PropertyKey => (typeof part === "string" ? snakeCase(part) : part);

function toFailure(error: unknown, fields: ChangeOptions["fields"]): unknown {
  if (!(error instanceof KubeError)) {
    return error;
  }
  if (isNotFound(error)) {
    return failures.projectNotFound();
  }
  // The operator grants rights in an organization's namespace while it provisions it.
  if (isForbidden(error)) {
    return failures.organizationRuntimeUnavailable();
  }
  if (isInvalid(error)) {
    return refusedByRule(error, (path) => bodyField(path, fields ?? {})) ?? failures.internal(error);
  }
  return failures.clusterUnavailable(error);
}
