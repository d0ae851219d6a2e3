/** What alerts need of the analytics store and the ledger. */

import {
  type AnalyticsSettings,
  openStore,
  type ProjectRequests,
  type ProjectsSelection,
  type ProjectUsage,
  projectRequests,
  projectUsage,
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
  /** Makes changes, each with its event, unless another process has made another one before. */
  change(changes: readonly AlertChange[]): Promise<{ recorded: RecordedAlert[]; changed: number }>;
}

/** The real one. */
export const alertLedger = (ledger: Ledger): AlertLedger => ({
  list: () => listAlertStates(ledger),
  change: (changes) => changeAlertStates(ledger, changes),
});

/** Each call throws StoreUnavailable while the store does not answer. */
export interface AlertStore {
  usage(selection: ProjectsSelection, signal: AbortSignal): Promise<ProjectUsage[]>;
  requests(selection: ProjectsSelection, signal: AbortSignal): Promise<ProjectRequests[]>;
  close(): Promise<void>;
}

/** Of the two queries of one group of projects. */
const CONNECTIONS = 2;

/** The real one. Nothing is connected to before the first query. */
export function openAlertStore(settings: AnalyticsSettings): AlertStore {
  const store = openStore(settings, { connections: CONNECTIONS, timeoutMs: 15_000 });
  return {
    usage: (selection, signal) => projectUsage(store, selection, STEP_SECONDS, signal),
    requests: (selection, signal) => projectRequests(store, selection, signal),
    close: () => store.client.close(),
  };
}
