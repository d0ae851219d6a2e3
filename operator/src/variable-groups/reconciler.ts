/**
 * The step of a project's reconcile that copies variables which others may change under it: of variable groups, and of Secrets that others
 * write. A version of the project is made from the copies, so another value is another deployment; a limited number of an
 * organization's projects is rolled so at a time.
 */

import { equalJson, type KubeClient, resources } from "@slipway/controller-runtime";
import { isInstanceType, type Project, type ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { ProjectContext } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import { childOf, type ProjectStores } from "../projects/stores.ts";
import { WaitingError } from "../reconcile-errors.ts";
import type { ResolvedSecrets } from "../references/reconciler.ts";
import { type Copied, SharedCopies } from "./copies.ts";
import { type LiveTemplate, RolloutLimiter } from "./rollout-limiter.ts";
import { recordedOf, type SharedRun, sharedRuns } from "./shared.ts";

type Stores = Pick<ProjectStores, "projects" | "secrets" | "variableGroups" | "children">;

/** Events of groups and Secrets come first; this is for one that was missed. */
const RESYNC_MS = 600_000;
/** The same for the end of a rollout that others wait for, or for the deletion of earlier copies. */
const QUEUE_RESYNC_MS = 30_000;

/** What a run of sources would be copied to now. */
interface Wanted {
  run: SharedRun;
  /** As recorded of it. */
  before: Copied[];
  /** As it is to be recorded; undefined where what is recorded stays. */
  after?: Copied[];
}

/** What a project's variables are made from. */
export interface SharedVariables {
  /** By key of the source the Secret that pods read. */
  resolved: ResolvedSecrets;
  /** In how many milliseconds to look again. */
  againInMs?: number;
  /** Other values of the same sources are the only reason for another version of the project. */
  isOfValues: boolean;
}

export class SharedVariableSteps {
  readonly #stores: Stores;
  readonly #copies: SharedCopies;
  readonly #limiter: RolloutLimiter;

  constructor({
    client,
    clock,
    stores,
    variableRollouts,
  }: {
    client: KubeClient;
    clock: Pick<Clock, "monotonic">;
    stores: Stores;
    variableRollouts: number;
  }) {
    this.#stores = stores;
    this.#copies = new SharedCopies({ client, secrets: stores.secrets });
    this.#limiter = new RolloutLimiter({
      projects: stores.projects,
      deploymentOf: (project) => childOf<LiveTemplate>(stores, resources.deployments, project),
      clock,
      limit: variableRollouts,
    });
  }

  /**
   * Creates the copies, and reports them. What cannot be copied now, or not yet, keeps its last values, and says why.
   * @throws WaitingError about `VariablesReady` when there are no values from before
   */
  async resolve(project: Project, organizationId: string, context: ProjectContext): Promise<SharedVariables> {
    const { status, conditions, signal } = context;
    const { namespace = "" } = project.metadata;
    const runs = sharedRuns(project, (name) => this.#stores.variableGroups.get(namespace, name));
    if (runs.length === 0) {
      conditions.remove("VariablesReady");
      status.sharedVariables = undefined;
      this.#limiter.release(project);
      return { resolved: new Map(), isOfValues: false };
    }
    const wanted: Wanted[] = [];
    let problem: Finding | undefined;
    for (const run of runs) {
      const before = recordedOf(run, status.sharedVariables ?? []);
      const isKept = before.length > 0 && this.#copies.areThere(project, before);
      if (isKept && project.spec.paused) {
        // Nothing starts from it: what is wanted by then is copied when the project resumes.
        wanted.push({ run, before });
        problem ??= run.problem;
        continue;
      }
      const found =
        run.problem ?? (await this.#copies.observe(project, run, { before, status, organizationId, signal }));
      if (Array.isArray(found)) {
        wanted.push({ run, before, after: found });
        continue;
      }
      const { reason, message } = found;
      if (isKept) {
        problem ??= { reason, message: `${message}. The last values are kept.` };
        wanted.push({ run, before });
      } else if (run.isOfGroups) {
        const requeueAfterMs = reason === "VariablesTooLarge" ? QUEUE_RESYNC_MS : RESYNC_MS;
        throw new WaitingError(reason, message, { condition: "VariablesReady", requeueAfterMs });
      } else {
        problem ??= { reason, message: `${message}. The pods read it directly.` };
      }
    }
    const admission = this.#admit(project, wanted, status);
    const copies: Copied[] = [];
    for (const one of wanted) {
      const isQueued = admission === "queued" && hasOtherValues(one);
      copies.push(
        ...(one.after === undefined || isQueued
          ? one.before
          : await this.#copies.ensure(project, one.run, one.after, { organizationId, signal })),
      );
    }
    status.sharedVariables = copies.length === 0 ? undefined : copies;
    const isQueued = admission === "queued";
    this.#report(conditions, isQueued, problem);
    const resolved = copies.flatMap(({ source, resolved, direct }): [string, string][] =>
      direct ? [] : [[source, resolved]],
    );
    return {
      resolved: new Map(resolved),
      againInMs: isQueued || problem?.reason === "VariablesTooLarge" ? QUEUE_RESYNC_MS : undefined,
      isOfValues: admission === "admitted",
    };
  }

  /**
   * Whether values that have changed may be taken over now. Other settings are deployed with the values of now.
   * @returns `admitted` where nothing but values has changed
   */
  #admit(
    project: Project,
    wanted: readonly Wanted[],
    status: ProjectStatus,
  ): "unlimited" | "admitted" | "queued" {
    const changed = wanted.filter(hasOtherValues);
    const { metadata, spec } = project;
    const isFree =
      changed.length === 0 ||
      metadata.generation !== status.observedGeneration ||
      changed.some(({ before }) => !this.#copies.areThere(project, before));
    if (isFree) {
      this.#limiter.release(project);
      return "unlimited";
    }
    const isAdmitted = isInstanceType(spec.type)
      ? this.#limiter.admit(project, status.deployments ?? [])
      : this.#limiter.admitRuns(project);
    return isAdmitted ? "admitted" : "queued";
  }

  #report(conditions: ProjectContext["conditions"], isQueued: boolean, problem: Finding | undefined): void {
    const type = "VariablesReady";
    if (isQueued) {
      const message = `Variables have changed, and the project waits for its turn: ${this.#limiter.limit} of an organization take them over at a time.`;
      conditions.set({ type, status: "False", reason: "RolloutQueued", message });
    } else if (problem) {
      conditions.set({ type, status: "False", ...problem });
    } else {
      conditions.set({ type, status: "True", reason: "VariablesResolved" });
    }
  }
}

const sourcesIn = (copies: readonly Copied[]) => copies.map(({ source }) => source);

/** Whether the same sources have other values: what is attached or detached is the project's own change. */
function hasOtherValues({ before, after }: Wanted): boolean {
  return (
    after !== undefined &&
    before.length > 0 &&
    equalJson(sourcesIn(before), sourcesIn(after)) &&
    !equalJson(before, after)
  );
}
