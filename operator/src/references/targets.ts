/** The project that a reference leads to, and what it has for it. Pure. */

import {
  credentialKeys,
  type DatabaseCredentials,
  type DeclaredReference,
  databaseMember,
  type EnvSource,
  findReferenced,
  httpMember,
  isDatabaseType,
  membersOf,
  type Project,
  passwordInForce,
  type Reference,
  readReference,
} from "@slipway/crds";
import type { Finding } from "../projects/status.ts";

/** Finds projects of one namespace. */
export interface ProjectLookup {
  get(id: string): Project | undefined;
  named(name: string): readonly Project[];
}

/** The Secrets of a spec, or of a deployment's settings, whose values have references. */
export function sourcesOf({ envsFrom }: Pick<Project["spec"], "envsFrom">): EnvSource[] {
  return (envsFrom ?? []).filter(({ references }) => references !== undefined);
}

/** Whether the values of each Secret with references are there: without them, the references themselves would be the variables. */
export function hasValues(
  spec: Pick<Project["spec"], "envsFrom">,
  resolved: ReadonlyMap<string, string> | undefined,
): boolean {
  return sourcesOf(spec).every(({ name }) => resolved?.has(name));
}

/** What a project's references name: ids, and names where they are bound to no id. */
export function namedBy({ spec }: Pick<Project, "spec">): string[] {
  return sourcesOf(spec).flatMap(({ references = [] }) =>
    references.map(({ reference, project }) => project ?? readReference(reference).project),
  );
}

/** The project that a declared reference leads to, or why there is none. One that is being deleted is none. */
export function targetOf(
  { reference, project: id }: DeclaredReference,
  projects: ProjectLookup,
): Project | Finding {
  const { project: text } = readReference(reference);
  if (id !== undefined) {
    const bound = projects.get(id);
    return bound && isAlive(bound) ? bound : unknown(`${text} (${id}) does not exist any more`);
  }
  const byId = projects.get(text);
  if (byId && isAlive(byId)) {
    return byId;
  }
  const { found, ambiguous } = findReferenced(text, projects.named(text).filter(isAlive));
  if (ambiguous) {
    return unknown(`several projects are called ${text}, name one by its id: ${ambiguous.join(", ")}`);
  }
  return found ?? unknown(`the organization has no project ${text}`);
}

const isAlive = ({ metadata }: Project): boolean => metadata.deletionTimestamp === undefined;

const unknown = (message: string): Finding => ({ reason: "ReferenceUnknown", message });

/** Ids of the projects that the references of one lead to. */
export function targetIds(id: string, projects: ProjectLookup): string[] {
  const project = projects.get(id);
  const references = sourcesOf(project?.spec ?? {}).flatMap((source) => source.references ?? []);
  // Of many to the same project one is enough.
  const targets = new Map(
    references.map((one) => [one.project ?? readReference(one.reference).project, one]),
  );
  return [...targets.values()]
    .map((one) => targetOf(one, projects))
    .flatMap((target) => ("metadata" in target ? [target.metadata.name] : []));
}

/**
 * The value of a reference, or what it waits for.
 * @param credentials of the target, where it is a database
 */
export function targetValue(
  { project: text, member }: Reference,
  target: Project,
  credentials: DatabaseCredentials | undefined,
): string | Finding {
  const { spec, status } = target;
  if (!(membersOf(spec.type) as readonly string[]).includes(member)) {
    const members = membersOf(spec.type).join(", ") || "nothing";
    return { reason: "ReferenceInvalid", message: `a project of type ${spec.type} offers ${members}` };
  }
  if (!isDatabaseType(spec.type)) {
    return httpMember(target, member) ?? pending(`${text} has no ${member} yet`);
  }
  const { inside, name, username, referenceUsername, bootstrappedAt, credentialsHash } =
    status?.database ?? {};
  if (bootstrappedAt === undefined || inside === undefined || credentials === undefined) {
    return pending(`the database ${text} is not provisioned yet`);
  }
  const password = passwordInForce(credentials, credentialsHash);
  if (password === undefined) {
    return pending(`the database ${text} has not taken over its password yet`);
  }
  const connection = {
    host: inside.host,
    port: inside.port,
    database: credentials[credentialKeys.database] ?? name ?? "",
    username: referenceUsername ?? credentials[credentialKeys.username] ?? username ?? "",
    password,
  };
  return databaseMember(spec.type, member, connection) ?? pending(`${text} has no ${member} yet`);
}

/** A database as if references got its own user, as they did before they had accounts. */
export function withoutReferenceAccount(target: Project): Project {
  const { status } = target;
  return status?.database?.referenceUsername === undefined
    ? target
    : { ...target, status: { ...status, database: { ...status.database, referenceUsername: undefined } } };
}

/**
 * The keyed hash of the password in the values of references of one Secret to one database; undefined where they have none, or one that cannot
 * outlast a renewal: that of PostgreSQL's user itself, also where the Secret has the password without the account's name.
 */
export function passwordHashIn(members: readonly string[], { spec, status }: Project): string | undefined {
  const hasPassword = members.includes("password") || members.includes("connection_string");
  const hasName = members.includes("username") || members.includes("connection_string");
  const { credentialsHash, referenceUsername } = status?.database ?? {};
  const canOutlast =
    spec.type === "postgresql" ? hasName && referenceUsername !== undefined : isDatabaseType(spec.type);
  return hasPassword && canOutlast ? credentialsHash : undefined;
}

const pending = (message: string): Finding => ({ reason: "ReferencePending", message });
