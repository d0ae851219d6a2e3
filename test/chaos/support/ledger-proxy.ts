import { TcpProxy } from "../../kit/processes/tcp-proxy.ts";
import type { Moment } from "./apiserver-proxy.ts";

/** What a connection is about to do, by its statements. */
interface Talk {
  /** It has sent runs in this transaction. */
  runs: boolean;
  /** It has sent their COMMIT. */
  committing: boolean;
}

/**
 * A proxy between an operator and PostgreSQL that recognizes the transactions that record runs: at the commit of one it can close
 * the connection before the server receives it, or before the operator receives the answer.
 */
export class LedgerProxy extends TcpProxy {
  /** Moments of commits at which to inject a fault, each once. */
  readonly faults: Moment[];
  readonly injected: Moment[];
  /** Transactions with runs whose commit was confirmed. */
  readonly commits: { count: number };

  /** @param onCut called as the connection is cut */
  constructor(port: number, onCut: (moment: Moment) => void = () => {}) {
    const talks = new Map<number, Talk>();
    const faults: Moment[] = [];
    const injected: Moment[] = [];
    const commits = { count: 0 };
    const inject = (moment: Moment): boolean => {
      const index = faults.indexOf(moment);
      if (index < 0) {
        return false;
      }
      faults.splice(index, 1);
      injected.push(moment);
      onCut(moment);
      return true;
    };
    super({ host: "127.0.0.1", port }, (connection, from, chunk) => {
      const talk = talks.get(connection) ?? { runs: false, committing: false };
      talks.set(connection, talk);
      const text = chunk.toString("latin1");
      if (from === "client") {
        if (text.includes("insert into job_runs")) {
          talk.runs = true;
        }
        if (!talk.runs || !/\bcommit\b/i.test(text)) {
          return "pass";
        }
        talk.committing = true;
        return inject("before") ? "cut" : "pass";
      }
      if (!talk.committing || !text.includes("COMMIT\0")) {
        return "pass";
      }
      Object.assign(talk, { runs: false, committing: false });
      commits.count += 1;
      if (inject("committed")) {
        return "cut";
      }
      // The operator is dead before it has read any of it, or right after: both happen.
      inject("answered");
      return "pass";
    });
    this.faults = faults;
    this.injected = injected;
    this.commits = commits;
  }

  /** The address of the database behind this proxy. */
  url(database: string): string {
    const url = new URL(database);
    url.port = String(this.port);
    return url.href;
  }
}
