import { failure } from "./errors.ts";
import type { Connection, Native } from "./native.ts";

/** Requests that wait for their turn; more of them are refused. */
const MAX_WAITING = 1000;

/** A connection for as long as it is needed. */
export interface Lease {
  connection: Connection;
  /** Gives it back; `clean` when nothing of this request is left in it. */
  release: (clean: boolean) => void;
}

/** A named session: its settings, its database and its temporary tables last from one request to the next. */
interface Session {
  connection: Connection;
  inUse: boolean;
  timer?: NodeJS.Timeout;
}

type Engine = Pick<Native, "CreateConnection" | "CloseConnection">;

/** Connections to the engine: one for every session, and others that requests without one take turns with. */
export class Connections {
  readonly #native: Engine;
  readonly #open: () => Connection;
  readonly #limit: number;
  readonly #idle: Connection[] = [];
  readonly #sessions = new Map<string, Session>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  /** @param options where the data are, how many statements run concurrently, and settings of every connection */
  constructor(native: Engine, options: { path: string; limit: number; settings: Record<string, string> }) {
    const args = Object.entries(options.settings).map(([name, value]) => `--${name}=${value}`);
    this.#native = native;
    this.#open = () => native.CreateConnection(options.path, args);
    this.#limit = options.limit;
    // Never given back: the engine stops when its last connection is closed.
    this.#open();
  }

  /** A connection that nothing was done with before. */
  async lease(): Promise<Lease> {
    await this.#turn();
    const connection = this.#idle.pop() ?? this.#open();
    return {
      connection,
      release: (clean) => {
        if (clean && this.#idle.length < this.#limit) {
          this.#idle.push(connection);
        } else {
          this.#native.CloseConnection(connection);
        }
        this.#done();
      },
    };
  }

  /**
   * The connection of a session, which is made when there is none.
   * @param key distinguishes the sessions of all users
   * @throws Failure while another request uses it
   */
  async session(key: string, id: string, options: { timeoutMs: number; mustExist: boolean }): Promise<Lease> {
    const known = this.#sessions.get(key);
    if (known?.inUse) {
      throw failure("SESSION_IS_LOCKED", `Session ${id} is locked by a concurrent client.`);
    }
    if (!known && options.mustExist) {
      throw failure("SESSION_NOT_FOUND", `Session ${id} not found.`);
    }
    const session = known ?? { connection: this.#open(), inUse: true };
    session.inUse = true;
    clearTimeout(session.timer);
    this.#sessions.set(key, session);
    const release = (): void => {
      session.inUse = false;
      session.timer = setTimeout(() => this.#end(key, session), options.timeoutMs);
    };
    await this.#turn().catch((error) => {
      release();
      throw error;
    });
    return {
      connection: session.connection,
      release: () => {
        release();
        this.#done();
      },
    };
  }

  /** Closes what is idle. What is in use is closed by the end of the process. */
  close(): void {
    for (const [key, session] of this.#sessions) {
      if (!session.inUse) {
        this.#end(key, session);
      }
    }
    for (const connection of this.#idle.splice(0)) {
      this.#native.CloseConnection(connection);
    }
  }

  #end(key: string, session: Session): void {
    clearTimeout(session.timer);
    this.#sessions.delete(key);
    this.#native.CloseConnection(session.connection);
  }

  async #turn(): Promise<void> {
    if (this.#running < this.#limit) {
      this.#running++;
      return;
    }
    if (this.#waiting.length >= MAX_WAITING) {
      throw failure(
        "TOO_MANY_SIMULTANEOUS_QUERIES",
        `Too many simultaneous queries. Maximum: ${this.#limit}.`,
      );
    }
    // Whoever is done hands its turn over, so the number that runs stays the same.
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #done(): void {
    const next = this.#waiting.shift();
    if (next) {
      next();
    } else {
      this.#running--;
    }
  }
}
