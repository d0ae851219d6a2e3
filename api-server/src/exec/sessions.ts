import type { ExecSocket } from "@slipway/controller-runtime";
import { ConcurrencyLimiter, type Release, withTimeout } from "@slipway/process";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Projects } from "../projects/store.ts";
import type { EndCode, Streams } from "./frames.ts";
import { ExecSession, type SessionEnd, type SessionLimits } from "./session.ts";

export interface ExecLimits extends SessionLimits {
  /** Sessions of this process; a quarter of them for one organization, and half of that for one project. */
  maxSessions: number;
  /** How often it is checked that sessions may go on. */
  recheckMs: number;
  /** How long a session may go on while that cannot be checked. */
  uncheckedMs: number;
}

export const EXEC_LIMITS: ExecLimits = {
  maxSessions: 64,
  recheckMs: 500,
  uncheckedMs: 15 * 60_000,
  maxBuffered: 128 * 1024,
  pingMs: 15_000,
  stalledMs: 90_000,
  idleMs: 15 * 60_000,
  maxDurationMs: 4 * 3_600_000,
  graceMs: 2_000,
};

export interface ExecSessionsOptions {
  projects: Pick<Projects, "find">;
  /** Which of these organizations are blocked: one query of the ledger. */
  listBlocked: (organizationIds: readonly string[]) => Promise<readonly string[]>;
  logger: Logger;
  limits?: Partial<ExecLimits>;
  onEnd?: (code: EndCode) => void;
}

/** A place among the sessions, taken before a command starts. */
export interface Reserved {
  /** Gives it back, when no session comes of it. */
  release: Release;
  /** The session of both connections. `onEnd` is called once, when it has ended. */
  begin(sockets: SessionSockets, onEnd: (end: SessionEnd) => void): void;
}

export interface SessionSockets {
  client: WebSocket;
  upstream: ExecSocket;
  streams: Streams;
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

interface Open extends SessionCaller {
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

/** The sessions of this process. */
export class ExecSessions {
  readonly #options: ExecSessionsOptions;
  readonly #limits: ExecLimits;
  readonly #byOrganization: ConcurrencyLimiter;
  readonly #byProject: ConcurrencyLimiter;
  readonly #open = new Set<Open>();
  #timer: NodeJS.Timeout | undefined;
  #isReadingBlocked = false;
  /** When blocked organizations were read last, in monotonic milliseconds. */
  #blockedReadAt = Number.NEGATIVE_INFINITY;
  #isEnding = false;
  #emptied: (() => void) | undefined;

  constructor(options: ExecSessionsOptions) {
    this.#options = options;
    this.#limits = { ...EXEC_LIMITS, ...options.limits };
    const { maxSessions } = this.#limits;
    const perOrganization = Math.ceil(maxSessions / 4);
    this.#byOrganization = new ConcurrencyLimiter({ total: maxSessions, perKey: perOrganization });
    this.#byProject = new ConcurrencyLimiter({ perKey: Math.ceil(perOrganization / 2) });
  }

  /** How many there are, those that are about to begin included. */
  get size(): number {
    return this.#byOrganization.inUse;
  }

  /**
   * @throws Failure 402 for a blocked organization, 409 when the project or its organization has its maximum, 503 when the process has,
   *   or ends, or the ledger does not answer
   */
  async reserve(caller: SessionCaller): Promise<Reserved> {
    const { organizationId } = caller.project;
    const blocked = await withLedgerErrors(() => this.#options.listBlocked([organizationId]));
    if (blocked.length > 0) {
      throw failures.organizationBlocked();
    }
    if (this.#isEnding) {
      throw failures.serverBusy();
    }
    const release = this.#take(caller.project);
    return {
      release,
      begin: (sockets, onEnd) => this.#begin(caller, sockets, release, onEnd),
    };
  }

  #take({ id, organizationId }: ApiProject): Release {
    const perOrganization = Math.ceil(this.#limits.maxSessions / 4);
    if (this.#byOrganization.usedBy(organizationId) >= perOrganization) {
      throw failures.execSessionLimitReached("organization", perOrganization);
    }
    const ofProject = this.#byProject.tryAcquire(`${organizationId}/${id}`);
    if (!ofProject) {
      throw failures.execSessionLimitReached("project", Math.ceil(perOrganization / 2));
    }
    const ofOrganization = this.#byOrganization.tryAcquire(organizationId);
    if (!ofOrganization) {
      ofProject();
      throw failures.serverBusy();
    }
    return () => {
      ofProject();
      ofOrganization();
    };
  }

  #begin(
    caller: SessionCaller,
    sockets: SessionSockets,
    release: Release,
    onEnd: (end: SessionEnd) => void,
  ): void {
    const finish = (end: SessionEnd): void => {
      release();
      this.#open.delete(open);
      if (this.#open.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
        this.#emptied?.();
      }
      this.#options.onEnd?.(end.code);
      onEnd(end);
    };
    const now = () => performance.now();
    const session = new ExecSession({ ...sockets, limits: this.#limits, now, onEnd: finish });
    // The guard has just admitted the caller, and the reservation its organization.
    const open: Open = { ...caller, session, isChecking: false, admittedAt: now(), unblockedAt: now() };
    this.#open.add(open);
    this.#timer ??= setInterval(() => this.#check(), this.#limits.recheckMs);
    if (this.#isEnding) {
      session.end("EXEC_SERVER_ENDING");
    }
  }

  /** Checks all of them: the callers in memory, with a query of each credential every few seconds, and the organizations in one query. */
  #check(): void {
    const now = performance.now();
    for (const open of this.#open) {
      const { session, admittedAt, unblockedAt } = open;
      session.check();
      if (session.isEnding) {
        continue;
      }
      if (now - Math.min(admittedAt, unblockedAt) > this.#limits.uncheckedMs) {
        session.end("EXEC_ACCESS_UNKNOWN");
      } else if (!open.isChecking) {
        void this.#checkOne(open);
      }
    }
    if (!this.#isReadingBlocked && now - this.#blockedReadAt >= BLOCKED_MS) {
      void this.#endBlocked(now);
    }
  }

  /** Each on its own, so that a slow answer for one keeps no other from its check. */
  async #checkOne(open: Open): Promise<void> {
    open.isChecking = true;
    try {
      await Promise.all([this.#checkCaller(open), this.#checkProject(open)]);
    } finally {
      open.isChecking = false;
    }
  }

  async #checkCaller(open: Open): Promise<void> {
    const startedAt = performance.now();
    try {
      await withTimeout(open.recheck(), CHECK_MS);
      open.admittedAt = startedAt;
    } catch (error) {
      if (error instanceof Failure && (error.status === 401 || error.status === 403)) {
        open.session.end("EXEC_ACCESS_REVOKED");
      }
      // The ledger or an issuer does not answer: whether the caller may go on will be seen, within `uncheckedMs`.
    }
  }

  async #checkProject({ project, session }: Open): Promise<void> {
    try {
      const found = Promise.resolve(this.#options.projects.find(project.organizationId, project.id));
      const now = await withTimeout(found, CHECK_MS);
      if (now?.resource.metadata.uid !== project.resource.metadata.uid) {
        session.end("EXEC_PROJECT_DELETED");
      }
    } catch {
      // The cluster does not answer: whether the project is there will be seen.
    }
  }

  /** One query at a time, and what it answers counts however late it comes. */
  async #endBlocked(startedAt: number): Promise<void> {
    this.#isReadingBlocked = true;
    this.#blockedReadAt = startedAt;
    const all = [...this.#open];
    const ids = [...new Set(all.map(({ project }) => project.organizationId))];
    try {
      const blocked = new Set(await this.#options.listBlocked(ids));
      for (const open of all) {
        if (blocked.has(open.project.organizationId)) {
          open.session.end("EXEC_ORGANIZATION_BLOCKED");
        } else {
          open.unblockedAt = startedAt;
        }
      }
    } catch (error) {
      this.#options.logger.warn(
        { err: error },
        "blocked organizations cannot be read for sessions of commands",
      );
    } finally {
      this.#isReadingBlocked = false;
    }
  }

  /** Ends all of them, so that the process can end; there are no new ones from then on. Resolves once their clients are closed. */
  async endAll(): Promise<void> {
    this.#isEnding = true;
    if (this.#open.size === 0) {
      return;
    }
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    for (const { session } of this.#open) {
      session.end("EXEC_SERVER_ENDING");
    }
    const late = setTimeout(() => {
      for (const { session } of this.#open) {
        session.terminate();
      }
    }, this.#limits.graceMs);
    await emptied;
    clearTimeout(late);
  }
}
