import type { ExecSocket } from "@slipway/controller-runtime";
import { ConcurrencyLimiter, type Release, withTimeout } from "@slipway/process";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import { failures } from "../errors/catalog.ts";
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
}

export const EXEC_LIMITS: ExecLimits = {
  maxSessions: 64,
  recheckMs: 500,
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
  /** Rejects once the caller may not go on: its credential, membership or grant is deleted, or its token has expired. */
  recheck(): Promise<void>;
}

interface Open extends SessionCaller {
  session: ExecSession;
}

/** How often blocked organizations are read, and how long the ledger may take for it. */
const BLOCKED_MS = 2_000;

/** The sessions of this process. */
export class ExecSessions {
  readonly #options: ExecSessionsOptions;
  readonly #limits: ExecLimits;
  readonly #byOrganization: ConcurrencyLimiter;
  readonly #byProject: ConcurrencyLimiter;
  readonly #open = new Set<Open>();
  #timer: NodeJS.Timeout | undefined;
  #isChecking = false;
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
    const open: Open = { ...caller, session };
    this.#open.add(open);
    this.#timer ??= setInterval(() => void this.#check(), this.#limits.recheckMs);
    if (this.#isEnding) {
      session.end("EXEC_SERVER_ENDING");
    }
  }

  /** Checks all of them: the callers in memory, with a query of each credential every few seconds, and the organizations in one query. */
  async #check(): Promise<void> {
    for (const { session } of this.#open) {
      session.check();
    }
    if (this.#isChecking) {
      return;
    }
    this.#isChecking = true;
    await Promise.all([this.#endBlocked(), ...[...this.#open].map((open) => this.#checkOne(open))]);
    this.#isChecking = false;
  }

  async #checkOne({ project, recheck, session }: Open): Promise<void> {
    try {
      await recheck();
    } catch {
      session.end("EXEC_ACCESS_REVOKED");
      return;
    }
    try {
      const now = await this.#options.projects.find(project.organizationId, project.id);
      if (now?.resource.metadata.uid !== project.resource.metadata.uid) {
        session.end("EXEC_PROJECT_DELETED");
      }
    } catch {
      // The cluster does not answer: whether the project is there will be seen.
    }
  }

  async #endBlocked(): Promise<void> {
    const now = performance.now();
    if (now - this.#blockedReadAt < BLOCKED_MS) {
      return;
    }
    this.#blockedReadAt = now;
    const all = [...this.#open];
    const ids = [...new Set(all.map(({ project }) => project.organizationId))];
    try {
      const blocked = await withTimeout(this.#options.listBlocked(ids), BLOCKED_MS);
      for (const { project, session } of all) {
        if (blocked.includes(project.organizationId)) {
          session.end("EXEC_ORGANIZATION_BLOCKED");
        }
      }
    } catch (error) {
      // Nothing can be blocked in a ledger that does not answer.
      this.#options.logger.debug({ err: error }, "blocked organizations cannot be read");
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
        session.end("EXEC_SERVER_ENDING");
      }
    }, this.#limits.graceMs);
    await emptied;
    clearTimeout(late);
  }
}
