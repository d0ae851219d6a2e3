/** Copies of variables that projects share, in Secrets of each project's own. */

import { createHmac } from "node:crypto";
import { equalJson, type KubeClient, type Store } from "@slipway/controller-runtime";
import type { Project, ProjectStatus } from "@slipway/crds";
import type { Finding } from "../projects/status.ts";
import { WaitingError } from "../reconcile-errors.ts";
import { ensureResolvedSecret, resolvedName, secretOf } from "../references/resolved-secret.ts";
import { type SharedContent, SharedContents } from "./contents.ts";
import { CopyKeys } from "./copy-key.ts";
import { bytesOf, copyProblem, MAX_COPIES_BYTES, missing } from "./problems.ts";
import { readsDirectly, type SharedRun } from "./shared.ts";

/** As a status records the copy of one source. */
export type Copied = NonNullable<ProjectStatus["sharedVariables"]>[number];

export class SharedCopies {
  readonly #client: KubeClient;
  readonly #secrets: Store;
  readonly #contents: SharedContents;
  readonly #keys: CopyKeys;

  /** @param secrets those of organizations' namespaces, without their data */
  constructor({ client, secrets }: { client: KubeClient; secrets: Store }) {
    this.#client = client;
    this.#secrets = secrets;
    this.#contents = new SharedContents({ client, secrets });
    this.#keys = new CopyKeys({ client, secrets });
  }

  /** What a run is copied to by now; or why it cannot be copied. @throws KubeError */
  async observe(
    project: Project,
    run: SharedRun,
    {
      before,
      status: { deployments = [] },
      organizationId,
      signal,
    }: { before: readonly Copied[]; status: ProjectStatus; organizationId: string; signal: AbortSignal },
  ): Promise<Copied[] | Finding> {
    const { namespace = "", name: id } = project.metadata;
    const contents: SharedContent[] = [];
    for (const source of run.sources) {
      const content = await this.#contents.read({ namespace, name: source.secret }, signal);
      if (content === undefined) {
        return missing(source);
      }
      contents.push(content);
    }
    const key = await this.#keys.keyOf(namespace, organizationId, signal);
    const resolved = resolvedName(id, hashOf(id, run, contents, key));
    const found = run.keys.map((source) => ({ source, resolved }));
    if (before.length > 0 && equalJson(namesOf(before), namesOf(found)) && this.areThere(project, before)) {
      return [...before];
    }
    const isDirect =
      before.length === 0 &&
      !run.isOfGroups &&
      run.sources.every(({ secret }) => readsDirectly(secret, deployments));
    const isNew = !isDirect && !this.areThere(project, found);
    const problem = copyProblem(run, contents, isNew ? this.#roomIn(namespace) : undefined);
    return problem ?? (isDirect ? found.map((one) => ({ ...one, direct: true })) : found);
  }

  /** Bytes that copies in a namespace may still have beside all that are there. */
  #roomIn(namespace: string): number {
    return this.#secrets.list(namespace).reduce((left, secret) => left - bytesOf(secret), MAX_COPIES_BYTES);
  }

  /** Whether pods can start from what is recorded. */
  areThere({ metadata }: Project, copies: readonly Copied[]): boolean {
    const secrets = this.#secrets;
    return copies.every(
      ({ resolved, direct }) => direct === true || secrets.get(metadata.namespace, resolved) !== undefined,
    );
  }

  /**
   * Creates the copy, of what the sources have by now.
   * @throws KubeError, WaitingError about `VariablesReady` when they have changed since they were observed
   */
  async ensure(
    project: Project,
    run: SharedRun,
    wanted: Copied[],
    { organizationId, signal }: { organizationId: string; signal: AbortSignal },
  ): Promise<Copied[]> {
    const { namespace = "", name: id } = project.metadata;
    if (this.areThere(project, wanted)) {
      return wanted;
    }
    const contents: SharedContent[] = [];
    let data: Record<string, string> = {};
    let problem: Finding | undefined;
    for (const source of run.sources) {
      const live = await this.#contents.readData({ namespace, name: source.secret }, signal);
      if (live === undefined) {
        problem ??= missing(source);
        continue;
      }
      contents.push(live.content);
      data = { ...data, ...live.data };
    }
    problem ??= copyProblem(run, contents, this.#roomIn(namespace));
    if (problem) {
      // It has changed since it was observed: the next reconcile decides.
      const { reason, message } = problem;
      throw new WaitingError(reason, message, { condition: "VariablesReady", requeueAfterMs: 1_000 });
    }
    const key = await this.#keys.keyOf(namespace, organizationId, signal);
    const secret = secretOf(project, organizationId, {
      hash: hashOf(id, run, contents, key),
      data,
      isCounted: true,
    });
    const resolved = await ensureResolvedSecret(secret, {
      client: this.#client,
      secrets: this.#secrets,
    });
    return run.keys.map((source) => ({ source, resolved }));
  }
}

const namesOf = (copies: readonly Copied[]) => copies.map(({ source, resolved }) => [source, resolved]);

/** The name of a copy is no secret: it is made of the sources, too, so that equal content of others has different names. */
function hashOf(
  id: string,
  { keys }: SharedRun,
  contents: readonly SharedContent[],
  secretKey: Buffer,
): string {
  return createHmac("sha256", secretKey)
    .update(JSON.stringify([id, ...keys.map((key, index) => [key, contents[index]?.digest])]))
    .digest("hex");
}
