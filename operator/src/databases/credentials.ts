/** The Secret with a database's accounts: created once, completed, never changed by the operator otherwise. */

import { randomInt } from "node:crypto";
import {
  controllerOf,
  controllerReference,
  isAlreadyExists,
  type KubeClient,
  type KubernetesObject,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import {
  completeCredentials,
  type DatabaseCredentials,
  databaseNames,
  type EngineName,
  fieldManagers,
  type Project,
} from "@slipway/crds";
import { RetryableError } from "../reconcile-errors.ts";
import { projectResource } from "../resources.ts";
import { childLabels } from "../workload/app.ts";

export interface CredentialDependencies {
  client: KubeClient;
  /** Secrets with the project label, without their data. */
  secrets: Store;
}

interface SecretObject extends KubernetesObject {
  data?: Record<string, string>;
}

/** Reads each content once. */
export class Credentials {
  readonly #deps: CredentialDependencies;
  /** By uid of the project: the content of this version of the Secret. */
  readonly #known = new Map<string, { version: string; credentials: DatabaseCredentials }>();

  constructor(deps: CredentialDependencies) {
    this.#deps = deps;
  }

  forget(uid: string): void {
    this.#known.delete(uid);
  }

  /**
   * The content of a project's Secret, created or completed where necessary.
   * @throws RetryableError `ChildConflict` when a Secret of that name has another owner
   */
  async ensure(
    project: Project,
    engine: EngineName,
    organizationId: string,
    signal: AbortSignal,
  ): Promise<DatabaseCredentials> {
    const { namespace, name: id, uid = "" } = project.metadata;
    const name = databaseNames(id).credentials;
    const seen = this.#deps.secrets.get(namespace, name);
    const known = this.#known.get(uid);
    if (seen && known && versionOf(seen) === known.version) {
      return known.credentials;
    }
    const live = await this.#deps.client.getOrUndefined<SecretObject>(
      resources.secrets,
      { namespace, name },
      { signal },
    );
    const kept = await this.#complete(live, project, engine, organizationId, signal);
    const credentials = decode(kept);
    this.#known.set(uid, { version: versionOf(kept), credentials });
    return credentials;
  }

  /**
   * Changes what is kept of passwords before the one that the engine has taken over; only of the content that was decided about.
   * @param change new values by key; null removes one
   */
  async changeEarlier(
    project: Project,
    change: Readonly<Record<string, string | null>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace, name: id, uid = "" } = project.metadata;
    const version = this.#known.get(uid)?.version.split("/")[1];
    if (version === undefined) {
      return;
    }
    const data = Object.fromEntries(
      Object.entries(change).map(([key, value]) => [key, value === null ? null : encode(value)]),
    );
    const patch = { metadata: { resourceVersion: version }, data };
    const written = await this.#deps.client.patch<SecretObject>(
      resources.secrets,
      { namespace, name: databaseNames(id).credentials },
      patch,
      { fieldManager: fieldManagers.project, signal },
    );
    this.#deps.secrets.observe(written);
    this.#known.set(uid, { version: versionOf(written), credentials: decode(written) });
  }

  async #complete(
    live: SecretObject | undefined,
    project: Project,
    engine: EngineName,
    organizationId: string,
    signal: AbortSignal,
  ): Promise<SecretObject> {
    const { client, secrets } = this.#deps;
    const { namespace, name: id } = project.metadata;
    const owner = live && controllerOf(live);
    if (owner && owner.uid !== project.metadata.uid) {
      throw new RetryableError("ChildConflict", "a Secret of the same name belongs to somebody else");
    }
    const given = decode(live);
    const whole = completeCredentials(engine, given, randomInt);
    const missing = Object.keys(whole).filter((key) => given[key] !== whole[key]);
    if (live && owner && missing.length === 0) {
      return live;
    }
    const metadata = {
      name: databaseNames(id).credentials,
      namespace,
      labels: childLabels({ type: engine, id, organizationId }),
      ownerReferences: [controllerReference(project, projectResource)],
    };
    const data = Object.fromEntries(missing.map((key) => [key, encode(whole[key] ?? "")]));
    const options = { fieldManager: fieldManagers.project, signal };
    let written: SecretObject;
    if (live) {
      // Only what it was read as may be completed: another process may be renewing it.
      const { resourceVersion } = live.metadata ?? {};
      const patch = { metadata: { ...metadata, resourceVersion }, data };
      written = await client.patch<SecretObject>(
        resources.secrets,
        { namespace, name: metadata.name },
        patch,
        options,
      );
    } else {
      written = await this.#create({ metadata, type: "Opaque", data }, options);
    }
    secrets.observe(written);
    return written;
  }

  async #create(
    secret: SecretObject & { type: string },
    options: { fieldManager: string; signal: AbortSignal },
  ): Promise<SecretObject> {
    try {
      return await this.#deps.client.create<SecretObject & { type: string }>(
        resources.secrets,
        secret,
        options,
      );
    } catch (error) {
      if (isAlreadyExists(error)) {
        throw new RetryableError("Conflict", "the credentials were made meanwhile", { cause: error });
      }
      throw error;
    }
  }
}

function versionOf({ metadata }: KubernetesObject): string {
  return `${metadata?.uid ?? ""}/${metadata?.resourceVersion ?? ""}`;
}

function decode(secret: SecretObject | undefined): DatabaseCredentials {
  return Object.fromEntries(
    Object.entries(secret?.data ?? {}).map(([key, value]) => [
      key,
      Buffer.from(value, "base64").toString("utf8"),
    ]),
  );
}

const encode = (text: string) => Buffer.from(text).toString("base64");
