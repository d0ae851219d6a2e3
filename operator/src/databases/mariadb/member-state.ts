/** The state of a member, as `ask.sh` prints it. Pure. */

/** UUID that means none. */
const NONE = "00000000-0000-0000-0000-000000000000";

/** How far a member's data reach in the history of its group. */
export interface Position {
  uuid: string;
  seqno: bigint;
}

/** No server runs there: the launcher waits for a group to join, or for an order. */
export interface Waiting {
  phase: "waiting";
  /** Identifies this run of the launcher. */
  run: string;
  /**
   * `none`: there has never been any, or it is deleted. `incomplete`: a copy was under way. `unborn`: an empty database that
   * has never been in a group. `broken`: how far they reach is unknown.
   */
  data: "none" | "incomplete" | "unborn" | "broken" | "whole";
  /** Of data that are whole. */
  position?: Position;
  /** It was the last one to leave its group. */
  safe: boolean;
}

/** A server answers. */
export interface Running {
  phase: "running";
  run: string;
  /** Whether it is in the part of the group that has a majority. */
  primary: boolean;
  /** It accepts statements. */
  ready: boolean;
  /** Galera's number: 4 synced, 2 gives a copy. */
  state: number;
  /** Members of its part of the group. */
  size: number;
  position?: Position;
  /** It runs scheduled events. */
  events: boolean;
  version: string;
}

/** It is starting, and reports nothing else. */
export interface Starting {
  phase: "starting";
}

export type MemberState = Waiting | Running | Starting;

const SYNCED = 4;
const DONOR = 2;

/** Whether a member has everything and accepts statements, also while it gives a copy to another one. */
export function isServing(facts: MemberState | undefined): facts is Running {
  return (
    facts?.phase === "running" &&
    facts.primary &&
    facts.ready &&
    (facts.state === SYNCED || facts.state === DONOR)
  );
}

/** Whether a member has everything and is not busy giving it to another one. */
export function isSynced(facts: MemberState | undefined): boolean {
  return isServing(facts) && facts.state === SYNCED;
}

/** @returns undefined when the text is not `ask.sh`'s */
export function parseMemberState(text: string): MemberState | undefined {
  const fields = new Map(
    text.split("\n").flatMap((line) => {
      const [, name, value] = /^([a-z_]+)[=\t](.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, (value ?? "").trim()] as const];
    }),
  );
  const run = fields.get("run");
  const phase = fields.get("phase");
  if (!run || !phase) {
    return undefined;
  }
  const component = fields.get("wsrep_cluster_status");
  if (component !== undefined) {
    return {
      phase: "running",
      run,
      primary: component === "Primary",
      ready: fields.get("wsrep_ready") === "ON",
      state: Number(fields.get("wsrep_local_state") ?? 0),
      size: Number(fields.get("wsrep_cluster_size") ?? 0),
      position: positionOf(fields.get("wsrep_local_state_uuid"), fields.get("wsrep_last_committed")),
      events: fields.get("event_scheduler") === "ON",
      version: /^[0-9.]+/.exec(fields.get("version") ?? "")?.[0] ?? "",
    };
  }
  return phase === "waiting" ? waiting(run, fields) : { phase: "starting" };
}

function waiting(run: string, fields: ReadonlyMap<string, string>): Waiting | Starting {
  const data = fields.get("data");
  if (
    data !== "none" &&
    data !== "incomplete" &&
    data !== "unborn" &&
    data !== "broken" &&
    data !== "whole"
  ) {
    return { phase: "starting" };
  }
  const position = data === "whole" ? positionOf(fields.get("uuid"), fields.get("seqno")) : undefined;
  // Whole data without a position cannot be compared with that of others.
  const reported = data === "whole" && !position ? "broken" : data;
  return { phase: "waiting", run, data: reported, position, safe: fields.get("safe") === "1" };
}

function positionOf(uuid = "", seqno = ""): Position | undefined {
  return /^[0-9a-f-]{36}$/.test(uuid) && uuid !== NONE && /^[0-9]+$/.test(seqno)
    ? { uuid, seqno: BigInt(seqno) }
    : undefined;
}
