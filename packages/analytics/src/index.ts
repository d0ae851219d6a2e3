/**
 * Access analytics: the events of requests, and the ClickHouse store that keeps and counts them. The collector inserts
 * events, the API server queries their counts. `config.ts` reads the settings, `event.ts` has the event and its bounds, and
 * `store/` has schema, inserts, statements and queries.
 */

export {
  type AnalyticsSettings,
  type AnalyticsVariables,
  analyticsSettings,
  analyticsVariables,
  settingsFrom,
} from "./config.ts";
export {
  type AccessEvent,
  canonicalAddress,
  type EventBatch,
  MAX_PATH_BYTES,
  MAX_USER_AGENT_BYTES,
  METHODS,
  type Method,
} from "./event.ts";
export type { InstanceSample, SampleBatch } from "./instance-sample.ts";
export {
  LEVELS,
  type Level,
  type LogBatch,
  type LogEvent,
  type LogSource,
  MAX_LOG_TEXT_BYTES,
  STREAMS,
  type Stream,
} from "./log-line.ts";
export { nanoseconds, STAMP, timestamp } from "./log-time.ts";
export {
  type ProjectRequests,
  type ProjectsSelection,
  type ProjectUsage,
  projectRequests,
  projectUsage,
  type RequestMinute,
  type UsagePoint,
} from "./store/alerts.ts";
export { MAX_AGENTS_PER_MINUTE, MAX_ROUTES_PER_MINUTE, MinuteBounds, OTHER } from "./store/bounds.ts";
export { insertEvents } from "./store/insert.ts";
export {
  type DrainedLine,
  type DrainPosition,
  drainHorizon,
  drainPage,
  nextStored,
  organizationsWithLines,
  type SavedPosition,
  savedPositions,
  savePositions,
  skippedLines,
} from "./store/log-drains.ts";
export {
  type FoundLine,
  type LogCursor,
  type LogQuery,
  type Omitted,
  omittedLogs,
  searchLogs,
} from "./store/log-search.ts";
export { insertLogs } from "./store/logs.ts";
export { LONGEST_STEP_SECONDS } from "./store/measured-samples.ts";
export {
  type HistoryPoint,
  type HistorySelection,
  type InstanceHistory,
  metricHistory,
  sampledInstances,
} from "./store/metric-history.ts";
export { insertSamples } from "./store/metrics.ts";
export { appliedVersions, migrate } from "./store/migrate.ts";
export {
  byStatus,
  type Counts,
  MOST_NAMED,
  type NamedCounts,
  named,
  type Page,
  type Paging,
  requestEvents,
  type Shares,
  type StatusCounts,
  type StoredEvent,
  type Summary,
  statusCodes,
  summary,
  userAgents,
} from "./store/queries.ts";
export { freeBytes, rowsOf as readRows } from "./store/rows.ts";
export { migrations, RETENTION_DAYS, rollups } from "./store/schema.ts";
export type { Filter, Selection } from "./store/statement.ts";
export { openStore, type Store, StoreUnavailable } from "./store/store.ts";
export type { Window } from "./store/window.ts";
