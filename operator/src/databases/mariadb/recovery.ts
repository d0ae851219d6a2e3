/**
 * Which member bootstraps the group when no member serves. Pure.
 *
 * A group is initialized once; from then on it continues from the member that has most, and only when every member has reported
 * its position: an acknowledged transaction is on at least one of them, and it is unknown on which.
 */

import { annotations } from "@slipway/crds";
import type { Finding } from "../../projects/status.ts";
import type { MemberState, Position, Running, Waiting } from "./member-state.ts";

export interface Group {
  /** The members, by ordinal; undefined for one that does not answer. */
  members: readonly (MemberState | undefined)[];
  /** The group was whole once. */
  bootstrapped: boolean;
  /** UUID of its history, once it is known. */
  identity?: string;
  /** The running members have not found each other for so long that they will not without an order. */
  stuck: boolean;
  /** A loss that is accepted where the operator would refuse to continue. */
  accepted?: Accepted;
}

/** A member to continue from, and its position: what any other had beyond it is discarded. */
export interface Accepted extends Position {
  ordinal: number;
}

/** @returns undefined for a text that names no member and position */
export function parseAccepted(text = ""): Accepted | undefined {
  const [, ordinal = "", uuid = "", seqno = ""] =
    /^([0-9]{1,2})\/([0-9a-f-]{36})\/([0-9]{1,18})$/.exec(text) ?? [];
  return uuid === "" ? undefined : { ordinal: Number(ordinal), uuid, seqno: BigInt(seqno) };
}

export type Decision =
  /** Some member is in a group with a majority: the others join it without an order. */
  | { kind: "serve" }
  | { kind: "wait"; finding: Finding }
  /** Nothing is done until a person has decided. */
  | { kind: "refuse"; finding: Finding }
  /** A member receives an order. */
  | {
      kind: "order";
      order: "initialize" | "bootstrap" | "revive" | "restart";
      member: number;
      run: string;
      /** Why it would have been refused without the accepted loss. */
      despite?: string;
    };

/** A member whose data are whole. */
interface Candidate {
  ordinal: number;
  facts: Running | Waiting;
  position: Position;
}

export function decide({ members, bootstrapped, identity, stuck, accepted }: Group): Decision {
  const states: (Running | Waiting)[] = [];
  for (const facts of members) {
    if (facts?.phase === "running" && facts.primary) {
      return { kind: "serve" };
    }
    if (facts?.phase === "running" || facts?.phase === "waiting") {
      states.push(facts);
    }
  }
  if (states.length < members.length) {
    return { kind: "wait", finding: membersMissing(members.length - states.length, bootstrapped) };
  }
  const candidates = states.flatMap((facts, ordinal): Candidate[] =>
    facts.position ? [{ ordinal, facts, position: facts.position }] : [],
  );
  const refused = objection(states, candidates, { bootstrapped, identity });
  if (refused) {
    return (
      continueDespite(refused, candidates, accepted) ?? {
        kind: "refuse",
        finding: { reason: "RecoveryRefused", message: refused + acceptanceHint(candidates) },
      }
    );
  }
  const best = candidates.toSorted(byPosition)[0];
  return best ? continueFrom(best, candidates, stuck) : initialize(states);
}

/** What forbids to continue, as a sentence. */
function objection(
  states: readonly (Running | Waiting)[],
  candidates: readonly Candidate[],
  { bootstrapped, identity }: Pick<Group, "bootstrapped" | "identity">,
): string | undefined {
  const histories = new Set(candidates.map(({ position }) => position.uuid));
  if (histories.size > 1) {
    return "The instances have data of different histories.";
  }
  if (
    bootstrapped &&
    identity !== undefined &&
    candidates.some(({ position }) => position.uuid !== identity)
  ) {
    return "The instances have data of another database.";
  }
  if (states.some((facts) => facts.phase === "waiting" && facts.data === "broken")) {
    return "An instance cannot report the position of its data.";
  }
  if (!bootstrapped) {
    return undefined;
  }
  // A member that was receiving a copy has nothing that its donor lacks.
  const lost = states.some(
    (facts) => facts.phase === "waiting" && (facts.data === "none" || facts.data === "unborn"),
  );
  if (lost) {
    return "An instance has lost its data, and may have had the last transactions.";
  }
  return candidates.length === 0 ? "No instance has data that are whole." : undefined;
}

/** Continues from the named member, where it reports that position itself, and no other has more of that history. */
function continueDespite(
  refused: string,
  candidates: readonly Candidate[],
  accepted: Accepted | undefined,
): Decision | undefined {
  const ahead = candidates.some(
    ({ position }) => position.uuid === accepted?.uuid && position.seqno > accepted.seqno,
  );
  const named = candidates.find(
    ({ ordinal, position }) =>
      ordinal === accepted?.ordinal && position.uuid === accepted.uuid && position.seqno === accepted.seqno,
  );
  if (!named || ahead) {
    return undefined;
  }
  const running = candidates.find(({ facts }) => facts.phase === "running");
  if (named.facts.phase === "running") {
    return { ...order("revive", named), despite: refused };
  }
  // A running member would not find a group that another one bootstraps.
  return running ? order("restart", running) : { ...order("bootstrap", named), despite: refused };
}

/** The annotation that accepts the loss, for the member that has most. */
function acceptanceHint(candidates: readonly Candidate[]): string {
  const best = candidates.toSorted(byPosition)[0];
  if (!best) {
    return "";
  }
  const { uuid, seqno } = best.position;
  return ` To go on from instance ${best.ordinal} and give up what any other had beyond it, annotate the project with ${annotations.acceptDataLoss}=${best.ordinal}/${uuid}/${seqno}.`;
}

/** The furthest first; of equals one that runs, then the one that left last, then the first. */
function byPosition(a: Candidate, b: Candidate): number {
  if (a.position.seqno !== b.position.seqno) {
    return a.position.seqno > b.position.seqno ? -1 : 1;
  }
  const rank = ({ facts }: Candidate) => (facts.phase === "running" ? 2 : facts.safe ? 1 : 0);
  return rank(b) - rank(a) || a.ordinal - b.ordinal;
}

function order(name: "bootstrap" | "revive" | "restart", { ordinal, facts }: Candidate) {
  return { kind: "order", order: name, member: ordinal, run: facts.run } as const;
}

function continueFrom(best: Candidate, candidates: readonly Candidate[], stuck: boolean): Decision {
  const running = candidates.filter(({ facts }) => facts.phase === "running");
  if (running.length === 0) {
    return order("bootstrap", best);
  }
  const behind = best.facts.phase === "waiting" ? running[0] : undefined;
  // A running member applies what it has received; several find each other when the network is back.
  if ((running.length > 1 || behind) && !stuck) {
    return { kind: "wait", finding: RECOVERING };
  }
  return behind ? order("restart", behind) : order("revive", best);
}

/** No member has ever been in a group. */
function initialize(states: readonly (Running | Waiting)[]): Decision {
  const unborn = states.findIndex((facts) => facts.phase === "waiting" && facts.data === "unborn");
  const member = Math.max(unborn, 0);
  const facts = states[member];
  if (facts?.phase !== "waiting") {
    return { kind: "wait", finding: RECOVERING };
  }
  if (facts.data === "unborn") {
    return { kind: "order", order: "bootstrap", member, run: facts.run };
  }
  const empty = states.findIndex((one) => one.phase === "waiting" && one.data === "none");
  const first = states[empty];
  return first
    ? { kind: "order", order: "initialize", member: empty, run: first.run }
    : { kind: "wait", finding: RECOVERING };
}

const RECOVERING: Finding = {
  reason: "Recovering",
  message: "The instances are finding out who has the last transactions.",
};

function membersMissing(missing: number, bootstrapped: boolean): Finding {
  return bootstrapped
    ? {
        reason: "Recovering",
        message: `No instance accepts writes; ${missing} of them have not reported their position yet.`,
      }
    : { reason: "Bootstrapping", message: "The database is being set up." };
}
