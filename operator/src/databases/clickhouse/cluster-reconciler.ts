/** What running ClickHouse servers need beside their objects: role labels, database, accounts, new pods in order. */

import { randomBytes } from "node:crypto";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { podProblem } from "../../applications/rollout.ts";
import { CONTAINER } from "../common/pod.ts";
import { isReady, ordinalOf, processOf, stayingPrimary } from "../common/pods.ts";
import { absent, heal, ROLLING_OUT, roll } from "../common/setup.ts";
import { labelRole } from "../common/steps.ts";
import type { Database } from "../database.ts";
import type { LiveDatabase, LivePod, TendContext, Tended } from "../driver.ts";
import { ask, Refused, type Server } from "./http-client.ts";
import { accounts, HTTPS_PORT, isReplicated, serverAddress } from "./names.ts";
import {
  BEHIND,
  credentialsProblem,
  databaseStatement,
  forgetStatements,
  membersStatement,
  READ_ONLY,
  serverNames,
  userStatements,
  VERSION,
} from "./sql.ts";
import { choosePrimary, relabelled } from "./topology.ts";

/** How long until something that is under way is looked at again, in milliseconds; pods wake it up before that. */
const SOON_MS = 2_000;
/** A server that does not answer holds up whoever asks it. */
const PATIENT_MS = 10_000;
/** How often several servers are asked whether they reach their Keepers. */
const ROUTINE_MS = 20_000;
const LATER_MS = 60_000;

/** What was done, so that a settled database is asked nothing. It may be lost: everything can be done again. */
interface Memory {
  /** What each process was set up with, by process. */
  setUp: Map<string, string>;
  /** What the process that clients are led to says of itself. */
  version?: { process: string; text: string };
}

/** Speaks to a server; another one in tests. */
export type Ask = typeof ask;

export class ClickHouseTender {
  readonly #ask: Ask;
  readonly #memories = new Map<string, Memory>();

  constructor(asking: Ask = ask) {
    this.#ask = asking;
  }

  forget(uid: string): void {
    this.#memories.delete(uid);
  }

  async tend(database: Database, live: LiveDatabase, context: TendContext): Promise<Tended> {
    const problem = credentialsProblem(context.credentials);
    if (problem) {
      return { missing: { reason: "CredentialsPending", message: problem }, againInMs: LATER_MS };
    }
    const primary = choosePrimary(live.pods, database.instances);
    for (const { pod, role } of relabelled(live.pods, primary)) {
      await labelRole(pod, role, context);
    }
    if (!primary) {
      await heal(live, context);
      return { ...noneServes(database, live), againInMs: SOON_MS };
    }
    const base: Tended = { primary: primary.metadata.name };
    const runningVersion = await this.#setUp(database, live, primary, context);
    if (runningVersion === undefined) {
      const message = "The database's accounts are not in place yet.";
      return { ...base, missing: { reason: "CredentialsPending", message }, againInMs: PATIENT_MS };
    }
    const credentialsHash = database.credentialsHash;
    const tended: Tended = { ...base, runningVersion, credentialsHash, againInMs: LATER_MS };
    const routine = isReplicated(database) ? await this.#look(database, live, primary, context) : {};
    return { ...tended, ...routine, ...(await move(database, live, primary, context)) };
  }

  /** The server that clients are led to has fetched all that others have acknowledged. */
  async hasEverything(database: Database, live: LiveDatabase, context: TendContext): Promise<boolean> {
    const primary = stayingPrimary(database, live);
    if (!primary) {
      return false;
    }
    const [behind] = await this.#askServer(database, primary, [BEHIND], context);
    return behind === "0";
  }

  /** A server on a node that is not ready is not asked, and few at once of those that did not answer before. */
  async #askServer(
    database: Database,
    pod: LivePod,
    statements: readonly string[],
    context: TendContext,
  ): Promise<string[]> {
    const server = await serverOf(database, pod, context);
    return context.askMember(pod, () => this.#ask(server, statements, context.signal));
  }

  #memory(uid: string): Memory {
    const memory = this.#memories.get(uid) ?? { setUp: new Map<string, string>() };
    this.#memories.set(uid, memory);
    return memory;
  }

  /**
   * Makes sure of the database on every server that serves, and of the user on one, once for each process and each
   * content of the Secret.
   * @returns the server's version; undefined when it could not be done now
   */
  async #setUp(
    database: Database,
    live: LiveDatabase,
    primary: LivePod,
    context: TendContext,
  ): Promise<string | undefined> {
    const memory = this.#memory(database.uid);
    const before = memory.setUp;
    memory.setUp = new Map();
    const key = [database.credentialsHash, database.accountsHash].join("/");
    const others = live.pods.filter((pod) => pod !== primary && isReady(pod));
    for (const pod of [primary, ...others]) {
      const process = processOf(pod);
      const wanted = pod === primary ? `${key}/user` : key;
      if (
        before.get(process) !== wanted &&
        !(await this.#setUpOne(database, pod, primary, memory, context))
      ) {
        return undefined;
      }
      memory.setUp.set(process, wanted);
    }
    return memory.version?.process === processOf(primary) ? memory.version.text : undefined;
  }

  async #setUpOne(
    database: Database,
    pod: LivePod,
    primary: LivePod,
    memory: Memory,
    context: TendContext,
  ): Promise<boolean> {
    const { credentials, log, status } = context;
    const setPassword = status.credentialsHash !== database.credentialsHash;
    const salt = randomBytes(16).toString("hex");
    const statements = [
      databaseStatement(database, credentials),
      ...(pod === primary ? [...userStatements(credentials, { setPassword, salt }), VERSION] : []),
    ];
    try {
      const answers = await this.#askServer(database, pod, statements, context);
      if (pod === primary) {
        memory.version = { process: processOf(pod), text: answers.at(-1) ?? "" };
      }
      return true;
    } catch (error) {
      // What a server says of a statement may repeat it.
      const { status, code } = error instanceof Refused ? error : {};
      const reason = error instanceof Refused ? undefined : (error as NodeJS.ErrnoException).code;
      log.warn({ pod: pod.metadata.name, status, code, reason }, "a database could not be set up");
      return false;
    }
  }

  /** Several servers: whether they reach their Keepers, and what of those that are gone they still wait for. */
  async #look(
    database: Database,
    { claims }: LiveDatabase,
    primary: LivePod,
    context: TendContext,
  ): Promise<Partial<Tended>> {
    const { credentials } = context;
    try {
      const statements = [READ_ONLY, membersStatement(credentials)];
      const [readOnly, members = ""] = await this.#askServer(database, primary, statements, context);
      const forgotten = forgetStatements(members, credentials, serverNames(database));
      // One whose volume is still there may come back.
      const gone = claims.every((claim) => ordinalOf(claim) < database.instances);
      if (forgotten.length > 0 && gone && database.members === database.instances) {
        await this.#askServer(database, primary, forgotten, context);
      }
      return readOnly === "0"
        ? { againInMs: ROUTINE_MS }
        : {
            missing: {
              reason: "Recovering",
              message: "Tables take no writes until the Keepers agree again.",
            },
            againInMs: PATIENT_MS,
          };
    } catch (error) {
      const { code } = error as { code?: string };
      context.log.warn({ pod: primary.metadata.name, code }, "a database could not be looked at");
      return { againInMs: PATIENT_MS };
    }
  }
}

/** Where a server is asked: its pod's address as it is now. */
async function serverOf(
  database: Database,
  { metadata }: LivePod,
  { authority, client, credentials, signal }: TendContext,
): Promise<Server> {
  const { namespace, name = "" } = metadata;
  type Pod = KubernetesObject & { status?: { podIP?: string } };
  const pod = await client.getOrUndefined<Pod>(resources.pods, { namespace, name }, { signal });
  if (!pod?.status?.podIP || pod.metadata?.uid !== metadata.uid) {
    throw Object.assign(new Error("the pod is gone"), { code: "GONE" });
  }
  return {
    ip: pod.status.podIP,
    port: HTTPS_PORT,
    name: serverAddress(database, name),
    authority,
    user: accounts.admin,
    password: credentials["superuser-password"] ?? "",
  };
}

/** One step towards the pods that should be. */
function move(
  database: Database,
  live: LiveDatabase,
  primary: LivePod,
  context: TendContext,
): Promise<Partial<Tended>> {
  const { instances } = database;
  const handOver = async (from: LivePod, candidates: readonly LivePod[]) => {
    const to = candidates.find((pod) => isReady(pod) && ordinalOf(pod) < instances);
    await labelRole(from, "replica", context);
    if (to) {
      await labelRole(to, "primary", context);
    }
    return { underWay: ROLLING_OUT, againInMs: SOON_MS };
  };
  const settled = (): Partial<Tended> =>
    live.pods.filter(isReady).length >= instances
      ? {}
      : { missing: { reason: "ReplicasMissing", message: "Not every instance serves." } };
  return roll(database, live, primary, { soonMs: SOON_MS, handOver, settled }, context);
}

/** That an instance is made anew is no fault, though nobody can write meanwhile. */
function noneServes(database: Database, { pods }: LiveDatabase): Pick<Tended, "missing" | "underWay"> {
  const missing = absent(database);
  const starting =
    database.bootstrapped &&
    pods.every(
      (pod) => pod.metadata.deletionTimestamp !== undefined || podProblem(pod, CONTAINER) === undefined,
    );
  return starting
    ? { missing, underWay: { reason: "RollingOut", message: "An instance is being started." } }
    : { missing };
}
