/**
 * The step of a project's reconcile that resolves references in its variables: for each Secret that has some, a Secret of the
 * project's own with the values. A version of the project is made from those, so another value is another deployment.
 */

import type { KubeClient } from "@slipway/controller-runtime";
import {
  credentialKeys,
  type DeclaredReference,
  databaseNames,
  type EnvSource,
  findCycle,
  hasReferenceSyntax,
  isDatabaseType,
  mayRefer,
  type Project,
  type ProjectStatus,
  passwordInForce,
  readReference,
  referencesIn,
  referenceText,
  resolveValue,
} from "@slipway/crds";
import type { ProjectContext } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import type { ProjectStores } from "../projects/stores.ts";
import { TerminalError, WaitingError } from "../reconcile-errors.ts";
import { type SecretContent, SecretContents } from "./contents.ts";
import { problemOf, tooLong } from "./problems.ts";
import { ensureResolvedSecret, resolvedSecret } from "./resolved-secret.ts";
import { BY_NAME } from "./sources.ts";
import {
  type ProjectLookup,
  passwordHashIn,
  sourcesOf,
  targetIds,
  targetOf,
  targetValue,
  withoutReferenceAccount,
} from "./targets.ts";

/** By name of a Secret with references, or by what else variables are copied from, the Secret with their values. */
export type ResolvedSecrets = ReadonlyMap<string, string>;

/** Events of the projects that are referred to come first; this is for one that was missed. */
const RESYNC_MS = 600_000;

/** What of a database's accounts its password in force is known by; not those of the engine itself. */
const ACCOUNT_KEYS: ReadonlySet<string> = new Set([
  credentialKeys.username,
  credentialKeys.password,
  credentialKeys.database,
  credentialKeys.previousPassword,
  credentialKeys.keptPassword,
  credentialKeys.monitor,
]);

/** What a Secret with values is made from. */
type Content = Parameters<typeof resolvedSecret>[2];

/** The values of a Secret's references. */
interface Resolved extends Content {
  /** With the users of databases themselves, where references get accounts of their own: what is deployed with those goes on with them. */
  former?: Content;
}

/** Values by reference, with the keyed hashes of the passwords among them by database. */
interface Values {
  values: ReadonlyMap<string, string>;
  passwords: ReadonlyMap<string, string>;
}

export class ReferenceSteps {
  readonly #client: KubeClient;
  readonly #stores: Pick<ProjectStores, "projects" | "secrets">;
  /** Variables with references, and accounts of databases. */
  readonly #sources: SecretContents;
  readonly #accounts: SecretContents;
  /** Generation of each project, by its uid, of which it is known that its references do not lead back to it. */
  readonly #acyclic = new Map<string, number | undefined>();

  constructor(deps: { client: KubeClient; stores: Pick<ProjectStores, "projects" | "secrets"> }) {
    this.#client = deps.client;
    this.#stores = deps.stores;
    const from = { client: deps.client, secrets: deps.stores.secrets };
    this.#sources = new SecretContents({ ...from, isRead: (_, value) => hasReferenceSyntax(value) });
    this.#accounts = new SecretContents({ ...from, isRead: (key) => ACCOUNT_KEYS.has(key) });
    deps.stores.projects.subscribe(({ type, object: { metadata } }) => {
      if (type === "delete") {
        this.#acyclic.delete(metadata.uid ?? "");
      }
    });
  }

  /**
   * Creates the Secrets with the values, and reports them. What cannot be resolved now keeps its last values, and says why.
   * @throws WaitingError or TerminalError about `ReferencesReady` when there are no values from before
   */
  async resolve(
    project: Project,
    organizationId: string,
    { status, conditions, signal }: ProjectContext,
  ): Promise<ResolvedSecrets> {
    const wanted = mayRefer(project.spec.type) ? sourcesOf(project.spec) : [];
    const sources = [...wanted, ...earlierSources(project, status, wanted)];
    if (wanted.length === 0) {
      conditions.remove("ReferencesReady");
    }
    const before = new Map((status.references ?? []).map(({ secret, resolved }) => [secret, resolved]));
    const cycle =
      wanted.length === 0 ? undefined : this.#cycleOf(project, !wanted.some(({ name }) => !before.has(name)));
    const resolved = new Map<string, string>();
    const made: Resolved[] = [];
    let problem: Finding | undefined;
    for (const source of sources) {
      const found = await this.#resolveSource(project, source, cycle, signal);
      const kept = before.get(source.name);
      if ("values" in found) {
        made.push(found);
      } else if (kept !== undefined && this.#stores.secrets.get(project.metadata.namespace, kept)) {
        resolved.set(source.name, kept);
        problem ??= found;
      } else if (wanted.includes(source)) {
        throw refusal(found);
      }
    }
    // Not before all are known: nothing names those of a project that waits for another one.
    for (const content of made) {
      const former = content.former && resolvedSecret(project, organizationId, content.former);
      const isDeployed = former !== undefined && before.get(content.source) === former.metadata.name;
      const secret = isDeployed ? former : resolvedSecret(project, organizationId, content);
      const to = { client: this.#client, secrets: this.#stores.secrets };
      resolved.set(content.source, await ensureResolvedSecret(secret, to));
    }
    const references = sources.flatMap(({ name: secret }) => {
      const name = resolved.get(secret);
      return name === undefined ? [] : [{ secret, resolved: name }];
    });
    status.references = references.length === 0 ? undefined : references;
    if (problem) {
      const message = `${problem.message}. The last values are kept.`;
      conditions.set({ type: "ReferencesReady", status: "False", reason: problem.reason, message });
    } else if (wanted.length > 0) {
      conditions.set({ type: "ReferencesReady", status: "True", reason: "ReferencesResolved" });
    }
    return resolved;
  }

  /** @returns the values, or why there are none */
  async #resolveSource(
    project: Project,
    { name, references = [] }: EnvSource,
    cycle: Finding | undefined,
    signal: AbortSignal,
  ): Promise<Resolved | Finding> {
    const { namespace = "" } = project.metadata;
    const content = await this.#sources.read({ namespace, name }, { signal });
    if (!content) {
      return { reason: "ReferencePending", message: `The Secret ${name} does not exist` };
    }
    const texts = Object.entries(content);
    const problem = problemOf(texts, references) ?? cycle;
    if (problem) {
      return problem;
    }
    const found = await this.#valuesOf(texts, references, namespace, signal);
    if ("reason" in found) {
      return found;
    }
    const withValues = ({ values, passwords }: Values): Content => {
      const resolved = texts.map(([variable, value]) => [
        variable,
        resolveValue(value, (one) => values.get(referenceText(one))) ?? "",
      ]);
      return { source: name, values: Object.fromEntries(resolved), key: found.key, passwords };
    };
    const made = withValues(found);
    return tooLong(made.values) ?? { ...made, former: found.former && withValues(found.former) };
  }

  /** The value of each reference, and a key that only those know who may read the passwords. */
  async #valuesOf(
    texts: readonly (readonly [string, string])[],
    declared: readonly DeclaredReference[],
    namespace: string,
    signal: AbortSignal,
  ): Promise<(Values & { key: string; former?: Values }) | Finding> {
    const projects = this.#lookup(namespace);
    const values = new Map<string, string>();
    const keys: string[] = [];
    const former = new Map<string, string>();
    const databases = new Map<string, { target: Project; members: string[] }>();
    const variables = new Map(
      texts.flatMap(([name, value]) =>
        referencesIn([value]).map((reference): [string, string] => [referenceText(reference), name]),
      ),
    );
    for (const one of declared) {
      const variable = variables.get(one.reference);
      if (variable === undefined) {
        continue;
      }
      const target = targetOf(one, projects);
      const credentials = "metadata" in target ? await this.#credentials(target, signal) : undefined;
      const reference = readReference(one.reference);
      const value = "metadata" in target ? targetValue(reference, target, credentials) : target;
      if (typeof value !== "string") {
        return { ...value, message: `${variable} -> ${one.reference}: ${value.message}` };
      }
      values.set(one.reference, value);
      keys.push(credentials?.[credentialKeys.monitor] ?? "");
      if (!("metadata" in target)) {
        continue;
      }
      const asUser = targetValue(reference, withoutReferenceAccount(target), credentials);
      former.set(one.reference, typeof asUser === "string" ? asUser : value);
      const seen = databases.get(target.metadata.name) ?? { target, members: [] };
      databases.set(target.metadata.name, { target, members: [...seen.members, reference.member] });
    }
    const isSame = [...values].every(([reference, value]) => former.get(reference) === value);
    const passwordsOf = (view: (target: Project) => Project) =>
      new Map(
        [...databases].flatMap(([id, { target, members }]): [string, string][] => {
          const hash = passwordHashIn(members, view(target));
          return hash === undefined ? [] : [[id, hash]];
        }),
      );
    return {
      values,
      passwords: passwordsOf((target) => target),
      key: keys.join("/"),
      ...(isSame ? {} : { former: { values: former, passwords: passwordsOf(withoutReferenceAccount) } }),
    };
  }

  /** The accounts of a database; read live where what the watch reported is not what its status says is in force. */
  async #credentials(target: Project, signal: AbortSignal): Promise<SecretContent | undefined> {
    const { namespace = "", name: id } = target.metadata;
    if (!isDatabaseType(target.spec.type)) {
      return undefined;
    }
    const ref = { namespace, name: databaseNames(id).credentials };
    const inForce = target.status?.database?.credentialsHash;
    const known = await this.#accounts.read(ref, { signal });
    return known && inForce !== undefined && passwordInForce(known, inForce) === undefined
      ? this.#accounts.read(ref, { signal, fresh: true })
      : known;
  }

  /**
   * How the references lead back to the project. A cycle begins with a write of a project's references, and is refused there: so
   * a project that has values is searched from once for each of its generations.
   */
  #cycleOf({ metadata }: Project, hasValues: boolean): Finding | undefined {
    const { namespace = "", name, uid = "", generation } = metadata;
    if (hasValues && this.#acyclic.has(uid) && this.#acyclic.get(uid) === generation) {
      return undefined;
    }
    const projects = this.#lookup(namespace);
    const cycle = findCycle(name, (id) => targetIds(id, projects));
    if (!cycle) {
      this.#acyclic.set(uid, generation);
      return undefined;
    }
    this.#acyclic.delete(uid);
    return {
      reason: "ReferenceCycle",
      message: `The references lead back to the project: ${cycle.join(" -> ")}`,
    };
  }

  #lookup(namespace: string): ProjectLookup {
    const { projects } = this.#stores;
    return {
      get: (id) => projects.get(namespace, id),
      named: (name) => projects.byIndex(BY_NAME, `${namespace}/${name}`),
    };
  }
}

/**
 * Those of the deployment that a project may return to: while a pre-deploy command comes first, or, with a volume, when the newest one
 * fails. That is the last one that succeeded, which this reconcile may put behind a newest one.
 */
function earlierSources(
  { spec }: Project,
  { deployments = [] }: ProjectStatus,
  wanted: readonly EnvSource[],
) {
  const mayReturn = mayRefer(spec.type) && (spec.storage?.persistent || spec.preDeployCommand !== undefined);
  const before = deployments.find(({ status }) => status === "succeeded");
  return mayReturn && before
    ? sourcesOf(before.settings).filter(({ name }) => wanted.every((one) => one.name !== name))
    : [];
}

/** Something else comes first, or the variables have to change. */
function refusal({ reason, message }: Finding): WaitingError | TerminalError {
  const condition = "ReferencesReady";
  return reason === "ReferencePending" || reason === "ReferenceUnknown"
    ? new WaitingError(reason, message, { condition, requeueAfterMs: RESYNC_MS })
    : new TerminalError(reason, message, { condition });
}
