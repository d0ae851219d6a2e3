/** Reasons of conditions and events that the runtime itself gives, whatever its reconcilers are of. */
export type RuntimeReason =
  | "ApiRefused"
  | "ApiUnavailable"
  | "ChildConflict"
  | "ChildTerminating"
  | "ClockSkew"
  | "Conflict"
  | "InternalError"
  | "NamespaceTerminating"
  | "TimedOut";

/** Of the runtime's own errors. */
export interface RuntimeCatalog {
  type: "Ready";
  reason: RuntimeReason;
}
