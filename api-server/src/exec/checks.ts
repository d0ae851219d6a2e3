import { withTimeout } from "@slipway/process";
import type { Logger } from "pino";
import { Failure } from "../errors/failure.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Projects } from "../projects/store.ts";
import type { ExecSession } from "./session.ts";

/** What is queried to find out whether sessions may go on. */
export interface CheckSources {
  projects: Pick<Projects, "find">;
  /** Which of these organizations are blocked: one query of the ledger. */
  listBlocked: (organizationIds: readonly string[]) => Promise<readonly string[]>;
  logger: Logger;
}

/** Whose session it is. */
export interface SessionCaller {
  project: ApiProject;
  /**
   * Rejects with a Failure 401 or 403 once the caller may not go on: its credential, membership or grant is deleted, or its token has
   * expired. Other errors are those of what must be asked for it.
   */
  recheck(): Promise<void>;
}

/** A session, and what is known of whether it may go on. */
export interface Checked extends SessionCaller {
  session: ExecSession;
  /** A check of its caller or its project is under way. */
  isChecking: boolean;
  /** When the caller was admitted last, and when its organization was known last not to be blocked, in monotonic milliseconds. */
  admittedAt: number;
  unblockedAt: number;
}

/** How often blocked organizations are read. */
const BLOCKED_MS = 2_000;
/** How long a check of one caller or project may take before the next is tried. */
const CHECK_MS = 5_000;

/** Ends sessions that may not go on. */
export class SessionChecks {
  readonly #sources: CheckSources;
  readonly #uncheckedMs: number;
  #isReadingBlocked = false;
  /** When blocked organizations were read last, in monotonic milliseconds. */
  #blockedReadAt = Number.NEGATIVE_INFINITY;

  /** @param uncheckedMs how long a session may go on while that cannot be checked */
  constructor(sources: CheckSources, uncheckedMs: number) {
    this.#sources = sources;
    this.#uncheckedMs = uncheckedMs;
  }

  /** Checks all of them: the callers in memory, with a query of each credential every few seconds, and the organizations in one query. */
  check(sessions: ReadonlySet<Checked>): void {
    const now = performance.now();
    for (const one of sessions) {
      const { session, admittedAt, unblockedAt } = one;
      session.check();
      if (session.isEnding) {
        continue;
      }
      if (now - Math.min(admittedAt, unblockedAt) > this.#uncheckedMs) {
        session.end("EXEC_ACCESS_UNKNOWN");
      } else if (!one.isChecking) {
        void this.#checkOne(one);
      }
    }
    if (!this.#isReadingBlocked && now - this.#blockedReadAt >= BLOCKED_MS) {
      void this.#endBlocked([...sessions], now);
    }
  }

  /** Each on its own, so that a slow answer for one keeps no other from its check. */
  async #checkOne(one: Checked): Promise<void> {
    one.isChecking = true;
    try {
      await Promise.all([checkCaller(one), this.#checkProject(one)]);
    } finally {
      one.isChecking = false;
    }
  }

  async #checkProject({ project, session }: Checked): Promise<void> {
    try {
      const found = Promise.resolve(this.#sources.projects.find(project.organizationId, project.id));
      const now = await withTimeout(found, CHECK_MS);
      if (now?.resource.metadata.uid !== project.resource.metadata.uid) {
        session.end("EXEC_PROJECT_DELETED");
      }
    } catch {
      // The cluster does not answer: whether the project is there will be seen.
    }
  }

  /** One query at a time, and what it answers counts however late it comes. */
  async #endBlocked(sessions: readonly Checked[], startedAt: number): Promise<void> {
    this.#isReadingBlocked = true;
    this.#blockedReadAt = startedAt;
    const ids = [...new Set(sessions.map(({ project }) => project.organizationId))];
    try {
      const blocked = new Set(await this.#sources.listBlocked(ids));
      for (const one of sessions) {
        if (blocked.has(one.project.organizationId)) {
          one.session.end("EXEC_ORGANIZATION_BLOCKED");
        } else {
          one.unblockedAt = startedAt;
        }
      }
    } catch (error) {
      this.#sources.logger.warn(
        { err: error },
        "blocked organizations cannot be read for sessions of commands",
      );
    } finally {
      this.#isReadingBlocked = false;
    }
  }
}

async function checkCaller(one: Checked): Promise<void> {
  const startedAt = performance.now();
  try {
    await withTimeout(one.recheck(), CHECK_MS);
    one.admittedAt = startedAt;
  } catch (error) {
    if (error instanceof Failure && (error.status === 401 || error.status === 403)) {
      one.session.end("EXEC_ACCESS_REVOKED");
    }
    // The ledger or an issuer does not answer: whether the caller may go on will be seen, or the session ends unchecked.
  }
}
