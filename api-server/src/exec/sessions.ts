import type { ExecSocket } from "@slipway/controller-runtime";
import { ConcurrencyLimiter, type Release } from "@slipway/process";
import type { WebSocket } from "ws";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { type Checked, type CheckSources, type SessionCaller, SessionChecks } from "./checks.ts";
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

export interface ExecSessionsOptions extends CheckSources {
  limits?: Partial<ExecLimits>;
  onEnd?: (code: EndCode) => void;
}

/** A place among the sessions, taken before a command starts. */
export interface Reserved {
  /** Gives it back, when no session comes of it. */
  release: Release;
  /** The session of both connections. `onEnd` is called once, when it has ended. */
  begin(sockets: SessionSockets, onEnd: (end: SessionEnd) => void): void;
  /** Ends what would have been one, whose client disconnected while its command started. */
  abandon(upstream: ExecSocket, onEnd: (end: SessionEnd) => void): void;
}

export interface SessionSockets {
  client: WebSocket;
  upstream: ExecSocket;
  streams: Streams;
}

const ABANDONED: SessionEnd = {
  code: "EXEC_CLIENT_CLOSED",
  exitCode: undefined,
  stdinBytes: 0,
  stdoutBytes: 0,
  stderrBytes: 0,
};

/** The sessions of this process. */
export class ExecSessions {
  readonly #options: ExecSessionsOptions;
  readonly #limits: ExecLimits;
  readonly #byOrganization: ConcurrencyLimiter;
  readonly #byProject: ConcurrencyLimiter;
  readonly #checks: SessionChecks;
  readonly #open = new Set<Checked>();
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;
  #emptied: (() => void) | undefined;

  constructor(options: ExecSessionsOptions) {
    this.#options = options;
    this.#limits = { ...EXEC_LIMITS, ...options.limits };
    const { maxSessions, uncheckedMs } = this.#limits;
    this.#checks = new SessionChecks(options, uncheckedMs);
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
      abandon: (upstream, onEnd) => {
        upstream.on("error", () => undefined);
        upstream.terminate();
        release();
        this.#options.onEnd?.(ABANDONED.code);
        onEnd(ABANDONED);
      },
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
    const open: Checked = { ...caller, session, isChecking: false, admittedAt: now(), unblockedAt: now() };
    this.#open.add(open);
    this.#timer ??= setInterval(() => this.#checks.check(this.#open), this.#limits.recheckMs);
    if (this.#isEnding) {
      session.end("EXEC_SERVER_ENDING");
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
