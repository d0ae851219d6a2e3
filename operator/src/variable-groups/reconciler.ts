/**
 * The step of a project's reconcile that copies variables which others may change under it: of variable groups, and of Secrets that others
 * write. A version of the project is made from the copies, so another value is another deployment; a limited number of an
 * organization's projects is rolled so at a time.
 */

import { createHash } from "node:crypto";
import { type KubeClient, resources } from "@slipway/controller-runtime";
import { GROUP_BYTES_MAX, isInstanceType, type Project, type ProjectStatus } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { ProjectContext } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import { childOf, type ProjectStores } from "../projects/stores.ts";
import { WaitingError } from "../reconcile-errors.ts";
import type { ResolvedSecrets } from "../references/reconciler.ts";
import {
  ensureResolvedSecret,
  MAX_RESOLVED_BYTES,
  resolvedName,
  secretOf,
} from "../references/resolved-secret.ts";
import { type SharedContent, SharedContents } from "./contents.ts";
import { type LiveTemplate, RolloutLimiter } from "./rollout-limiter.ts";
import { readsDirectly, type SharedSource, sharedSources } from "./shared.ts";

type Stores = Pick<ProjectStores, "projects" | "secrets" | "variableGroups" | "children">;
type Copied = NonNullable<ProjectStatus["sharedVariables"]>[number];

/** Events of groups and Secrets come first; this is for one that was missed. */
const RESYNC_MS = 600_000;
/** The same for the end of a rollout that others wait for. */
const QUEUE_RESYNC_MS = 30_000;

/** What a source would be copied to now. */
interface Wanted {
  /** Absent where the last values are kept. */
  source?: SharedSource;
  /** As it is, or would be, recorded. */
  copied: Copied;
  /** What is recorded, where it is of another content. */
  before?: Copied;
}

export class SharedVariableSteps {
  readonly #client: KubeClient;
  readonly #stores: Stores;
  readonly #contents: SharedContents;
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
    this.#client = client;
    this.#stores = stores;
    this.#contents = new SharedContents({ client, secrets: stores.secrets });
    this.#limiter = new RolloutLimiter({
      projects: stores.projects,
      deploymentOf: (project) => childOf<LiveTemplate>(stores, resources.deployments, project),
      clock,
      limit: variableRollouts,
    });
  }

  /**
   * Creates the copies, and reports them. What cannot be copied now, or not yet, keeps its last values, and says why.
   * @returns by key of the source the Secret that pods read, and in how many milliseconds to look again
   * @throws WaitingError about `VariablesReady` when there are no values from before
   */
  async resolve(
    project: Project,
    organizationId: string,
    context: ProjectContext,
  ): Promise<{ resolved: ResolvedSecrets; againInMs?: number }> {
    const { status, conditions, signal } = context;
    const { namespace = "" } = project.metadata;
    const sources = sharedSources(project, (name) => this.#stores.variableGroups.get(namespace, name));
    if (sources.length === 0) {
      conditions.remove("VariablesReady");
      status.sharedVariables = undefined;
      return { resolved: new Map() };
    }
    const recorded = new Map((status.sharedVariables ?? []).map((one) => [one.source, one]));
    const wanted: Wanted[] = [];
    let problem: Finding | undefined;
    for (const source of sources) {
      const before = recorded.get(source.key);
      const found =
        "secret" in source ? await this.#observe(project, source, before, status, signal) : source;
      if ("copied" in found) {
        wanted.push(found);
        continue;
      }
      const { reason, message } = found;
      if (before && this.#isThere(project, before)) {
        problem ??= { reason, message: `${message}. The last values are kept.` };
        wanted.push({ copied: before });
      } else if (!("secret" in source) || source.group !== undefined) {
        throw new WaitingError(reason, message, { condition: "VariablesReady", requeueAfterMs: RESYNC_MS });
      } else {
        problem ??= { reason, message: `${message}. The pods read it directly.` };
      }
    }
    const isQueued = !this.#mayRoll(project, wanted, status);
    const copies: Copied[] = [];
    for (const { source, copied, before } of wanted) {
      const isKept = source === undefined || (isQueued && before !== undefined);
      copies.push(
        isKept ? (before ?? copied) : await this.#ensure(project, organizationId, source, copied, signal),
      );
    }
    status.sharedVariables = copies.length === 0 ? undefined : copies;
    this.#report(conditions, isQueued, problem);
    const resolved = copies.flatMap(({ source, resolved, direct }): [string, string][] =>
      direct ? [] : [[source, resolved]],
    );
    return { resolved: new Map(resolved), againInMs: isQueued ? QUEUE_RESYNC_MS : undefined };
  }

  /** What a source has now; or why there is nothing that can be copied. */
  async #observe(
    project: Project,
    source: SharedSource,
    before: Copied | undefined,
    { deployments = [] }: ProjectStatus,
    signal: AbortSignal,
  ): Promise<Wanted | Finding> {
    const { namespace = "", name: id } = project.metadata;
    const content = await this.#contents.read({ namespace, name: source.secret }, signal);
    const problem = problemOf(source, content);
    if (problem || content === undefined) {
      return problem ?? missing(source);
    }
    const resolved = resolvedName(id, hashOf(id, source, content));
    if (before?.resolved === resolved) {
      return { source, copied: before };
    }
    const isDirect =
      before === undefined && source.group === undefined && readsDirectly(source.secret, deployments);
    const copied = { source: source.key, resolved, ...(isDirect ? { direct: true } : {}) };
    return { source, copied, ...(before ? { before } : {}) };
  }

  /**
   * Whether values that have changed may be taken over now. Other settings are deployed with the values of now, and what has no instances is
   * not rolled.
   */
  #mayRoll(project: Project, wanted: readonly Wanted[], status: ProjectStatus): boolean {
    const changed = wanted.filter(({ before }) => before !== undefined);
    if (changed.length === 0) {
      this.#limiter.release(project);
      return true;
    }
    const { metadata, spec } = project;
    const isFree =
      spec.paused === true ||
      !isInstanceType(spec.type) ||
      metadata.generation !== status.observedGeneration ||
      changed.some(({ before }) => !this.#isThere(project, before));
    return isFree || this.#limiter.admit(project, status.deployments ?? []);
  }

  /** Whether pods can start from what is recorded. */
  #isThere({ metadata }: Project, copied: Copied | undefined): boolean {
    return (
      copied !== undefined &&
      (copied.direct === true || this.#stores.secrets.get(metadata.namespace, copied.resolved) !== undefined)
    );
  }

  /** Creates the copy, of what the source has by now. */
  async #ensure(
    project: Project,
    organizationId: string,
    source: SharedSource,
    copied: Copied,
    signal: AbortSignal,
  ): Promise<Copied> {
    const { namespace = "", name: id } = project.metadata;
    if (this.#isThere(project, copied)) {
      return copied;
    }
    const live = await this.#contents.readData({ namespace, name: source.secret }, signal);
    const problem = problemOf(source, live?.content);
    if (problem || live === undefined) {
      // It has changed since it was observed: the next reconcile decides.
      const { reason, message } = problem ?? missing(source);
      throw new WaitingError(reason, message, { condition: "VariablesReady", requeueAfterMs: 1_000 });
    }
    const secret = secretOf(project, organizationId, {
      hash: hashOf(id, source, live.content),
      data: live.data,
    });
    const resolved = await ensureResolvedSecret(secret, {
      client: this.#client,
      secrets: this.#stores.secrets,
    });
    return { source: source.key, resolved };
  }

  #report(conditions: ProjectContext["conditions"], isQueued: boolean, problem: Finding | undefined): void {
    const type = "VariablesReady";
    if (isQueued) {
      const message = `Variables have changed, and the project waits for others: ${this.#limiter.limit} of an organization are rolled at a time.`;
      conditions.set({ type, status: "False", reason: "RolloutQueued", message });
    } else if (problem) {
      conditions.set({ type, status: "False", ...problem });
    } else {
      conditions.set({ type, status: "True", reason: "VariablesResolved" });
    }
  }
}

/** The name of a copy is no secret: it is made of the source, too, so that equal content of two sources has different names. */
function hashOf(id: string, { key }: SharedSource, { digest }: SharedContent): string {
  return createHash("sha256")
    .update(JSON.stringify([id, key, digest]))
    .digest("hex");
}

/** Why the content of a source cannot be copied. */
function problemOf(source: SharedSource, content: SharedContent | undefined): Finding | undefined {
  if (content === undefined) {
    return missing(source);
  }
  const most = source.group === undefined ? MAX_RESOLVED_BYTES : GROUP_BYTES_MAX;
  const what =
    source.group === undefined ? `The Secret ${source.secret}` : `The variable group ${source.group}`;
  const reason = "VariablesTooLarge";
  if (content.tooLong !== undefined) {
    return { reason, message: `${what}: ${content.tooLong} is longer than Linux passes to a process` };
  }
  return content.bytes > most ? { reason, message: `${what} is larger than ${most / 1_024} KiB` } : undefined;
}

function missing({ secret, group }: SharedSource): Finding {
  const of = group === undefined ? "" : ` of the variable group ${group}`;
  return { reason: "SecretNotFound", message: `The Secret ${secret}${of} does not exist` };
}
