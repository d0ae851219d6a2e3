/** What alerts need of the analytics store and the ledger. */

import {
  type AnalyticsSettings,
  openStore,
  type ProjectRequests,
  type ProjectsSelection,
  type ProjectUsage,
  projectRequests,
  projectUsage,
  StoreUnavailable,
} from "@slipway/analytics";
import {
  type AlertChange,
  changeAlertStates,
  type Ledger,
  listAlertStates,
  type RecordedAlert,
} from "@slipway/ledger";
import { STEP_SECONDS } from "./observe.ts";

/** Each call throws while the ledger is unavailable. */
export interface AlertLedger {
  list(): Promise<RecordedAlert[]>;
  /** Makes changes, each with its event, unless another process has made another one before, or they were observed too long ago. */
  change(
    changes: readonly AlertChange[],
    observedAt: Date,
  ): Promise<{ recorded: RecordedAlert[]; changed: number }>;
}

/** The real one. */
export const alertLedger = (ledger: Ledger): AlertLedger => ({
  list: () => listAlertStates(ledger),
  change: (changes, observedAt) => changeAlertStates(ledger, changes, observedAt),
});

/** Each call throws while the store does not answer: StoreUnavailable that is busy where it has given the query up. */
export interface AlertStore {
  usage(selection: ProjectsSelection, signal: AbortSignal): Promise<ProjectUsage[]>;
  requests(selection: ProjectsSelection, signal: AbortSignal): Promise<ProjectRequests[]>;
  close(): Promise<void>;
}

/** Codes of a connection that was never there: no query has broken it. */
const NOT_CONNECTED = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"];

/**
 * Why a query failed. `too much`: the store has given it up, or its answer was too long. `refused`: the store has an error of its own, the connection broke, or
 * there was no answer, or one of something in between: any of it may be by one project's data, and all of it may be of other queries, too. `away`: there is
 * no connection.
 */
export function failureOf(error: unknown): "too much" | "refused" | "away" {
  const isUnavailable = error instanceof StoreUnavailable;
  const cause = isUnavailable ? error.cause : error;
  if (isUnavailable && (error.busy || cause instanceof RangeError)) {
    return "too much";
  }
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  // What is not by the store's client is of opening it, unless it has one of the numbers of the store's errors.
  const isAsked = isUnavailable || /^[0-9]+$/.test(code);
  return isAsked && !NOT_CONNECTED.includes(code) ? "refused" : "away";
}

/** Of the two queries of one group of projects. */
const CONNECTIONS = 2;

/** The real one. Nothing is connected to before the first query. */
export function openAlertStore(settings: AnalyticsSettings): AlertStore {
  const store = openStore(settings, { connections: CONNECTIONS, timeoutMs: 15_000 });
  return {
    usage: (selection, signal) => projectUsage(store, selection, STEP_SECONDS, { signal }),
    requests: (selection, signal) => projectRequests(store, selection, { signal }),
    close: () => store.client.close(),
  };
}

/**
 * A store that is opened by the first query, and again by the next one after it could not be opened, or did not answer: the files of its password and
 * its authority may have changed.
 */
export function reopeningStore(open: () => AlertStore): AlertStore {
  let current: AlertStore | undefined;
  const query = async <T>(run: (store: AlertStore) => Promise<T>, signal: AbortSignal): Promise<T> => {
    current ??= open();
    const store = current;
    try {
      return await run(store);
    } catch (error) {
      const isBusy = error instanceof StoreUnavailable && error.busy;
      if (!isBusy && !signal.aborted && current === store) {
        current = undefined;
        await store.close();
      }
      throw error;
    }
  };
  return {
    usage: (selection, signal) => query((store) => store.usage(selection, signal), signal),
    requests: (selection, signal) => query((store) => store.requests(selection, signal), signal),
    close: async () => current?.close(),
  };
}
