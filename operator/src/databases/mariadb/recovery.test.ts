import { describe, expect, test } from "vitest";
import type { MemberState, Running, Waiting } from "./member-state.ts";
import { type Decision, decide, type Group, parseAccepted } from "./recovery.ts";

const HERE = "71951be9-e5f5-11f1-ab66-3a367bef804d";
const THERE = "266c5f1b-e5f5-11f1-b59b-77b386457068";

const has = (seqno: number, change: Partial<Waiting> = {}): Waiting => ({
  phase: "waiting",
  run: `run-${seqno}`,
  data: "whole",
  position: { uuid: HERE, seqno: BigInt(seqno) },
  safe: false,
  ...change,
});
const without = (data: Waiting["data"]): Waiting => ({
  phase: "waiting",
  run: `run-${data}`,
  data,
  safe: false,
});
const runs = (seqno: number, change: Partial<Running> = {}): Running => ({
  phase: "running",
  run: `run-${seqno}`,
  primary: false,
  ready: false,
  state: 0,
  size: 1,
  position: { uuid: HERE, seqno: BigInt(seqno) },
  events: false,
  version: "11.8.6",
  ...change,
});
const serves = runs(9, { primary: true, ready: true, state: 4 });
const starting: MemberState = { phase: "starting" };

const group = (members: Group["members"], change: Partial<Group> = {}): Group => ({
  members,
  bootstrapped: true,
  identity: HERE,
  stuck: false,
  ...change,
});
/** A decision in a few words. */
const textOf = (decision: Decision): string =>
  decision.kind === "order"
    ? `${decision.order} ${decision.member} in ${decision.run}`
    : decision.kind === "serve"
      ? "serve"
      : `${decision.kind}: ${decision.finding.reason}`;

describe("a group that was whole", () => {
  test.each<[string, Group["members"], string]>([
    ["continues automatically while one serves", [serves, undefined, has(3)], "serve"],
    ["waits for who does not answer", [has(7), has(7), undefined], "wait: Recovering"],
    ["waits for who is on the way", [has(7), has(7), starting], "wait: Recovering"],
    ["continues from the member that has most", [has(7), has(9), has(8)], "bootstrap 1 in run-9"],
    ["of equals, from who left last", [has(7), has(7), has(7, { safe: true })], "bootstrap 2 in run-7"],
    ["of equals, from the first", [has(7), has(7), has(6)], "bootstrap 0 in run-7"],
    [
      "never from who left last, when another one has more",
      [has(7, { safe: true }), has(9), has(8)],
      "bootstrap 1 in run-9",
    ],
    [
      "does without a copy that was interrupted",
      [has(7), without("incomplete"), has(5)],
      "bootstrap 0 in run-7",
    ],
    ["refuses without the data of one", [has(7), has(7), without("none")], "refuse: RecoveryRefused"],
    ["refuses when one was created again", [has(7), has(7), without("unborn")], "refuse: RecoveryRefused"],
    [
      "refuses when one does not know its position",
      [has(7), has(7), without("broken")],
      "refuse: RecoveryRefused",
    ],
    [
      "refuses data of two histories",
      [has(7), has(7), has(9, { position: { uuid: THERE, seqno: 9n } })],
      "refuse: RecoveryRefused",
    ],
    [
      "refuses data of another database",
      [9, 8, 7].map((seqno) => has(seqno, { position: { uuid: THERE, seqno: BigInt(seqno) } })),
      "refuse: RecoveryRefused",
    ],
    [
      "is never initialized again",
      [without("none"), without("none"), without("none")],
      "refuse: RecoveryRefused",
    ],
    ["revives the one that is left", [runs(9), has(7), has(9)], "revive 0 in run-9"],
    ["waits while those that run find each other", [runs(9), runs(9), has(9)], "wait: Recovering"],
    ["waits while one that runs catches up", [runs(8), has(9), has(7)], "wait: Recovering"],
  ])("%s", (_, members, want) => {
    expect(textOf(decide(group(members)))).toBe(want);
  });

  test("that does not recover automatically continues from the member that has most", () => {
    expect(textOf(decide(group([runs(8), runs(9), has(9)], { stuck: true })))).toBe("revive 1 in run-9");
    expect(textOf(decide(group([runs(8), has(9), has(7)], { stuck: true })))).toBe("restart 0 in run-8");
  });
});

describe("a loss that was accepted", () => {
  const none = without("none");
  test.each<[string, Group["members"], string, string]>([
    ["continues from the named member", [has(7), has(7), none], `0/${HERE}/7`, "bootstrap 0 in run-7"],
    [
      "continues from it, also of other data",
      [has(7), has(9, { position: { uuid: THERE, seqno: 9n } }), none],
      `1/${THERE}/9`,
      "bootstrap 1 in run-9",
    ],
    [
      "continues from it where one does not know its position",
      [has(7), without("broken"), has(6)],
      `0/${HERE}/7`,
      "bootstrap 0 in run-7",
    ],
    ["continues from it where it runs", [runs(9), has(8), none], `0/${HERE}/9`, "revive 0 in run-9"],
    [
      "continues from it once no other one runs",
      [has(9), runs(8), none],
      `0/${HERE}/9`,
      "restart 1 in run-8",
    ],
    ["is of no use for another position", [has(7), has(7), none], `0/${HERE}/6`, "refuse: RecoveryRefused"],
    [
      "is of no use where another one has more",
      [has(7), has(8), none],
      `0/${HERE}/7`,
      "refuse: RecoveryRefused",
    ],
    [
      "is of no use for one that has no data",
      [has(7), has(7), none],
      `2/${HERE}/7`,
      "refuse: RecoveryRefused",
    ],
    [
      "does not replace the word of one that does not answer",
      [has(7), undefined, none],
      `0/${HERE}/7`,
      "wait: Recovering",
    ],
    [
      "changes nothing where nothing is refused",
      [has(7), has(9), has(8)],
      `0/${HERE}/7`,
      "bootstrap 1 in run-9",
    ],
  ])("%s", (_, members, text, want) => {
    expect(textOf(decide(group(members, { accepted: parseAccepted(text) })))).toBe(want);
  });

  test("is what the refusal proposes", () => {
    const refused = decide(group([has(7), has(9), none]));
    const message = refused.kind === "refuse" ? refused.finding.message : "";
    expect(message).toContain(`slipway.dev/accept-data-loss=1/${HERE}/9.`);
  });

  test.each(["", "0", "yes", `0/${HERE}`, `0/${HERE}/`, `-1/${HERE}/7`, `0/${HERE}/7 `, `0/${HERE}/-1`])(
    "%j names nothing",
    (text) => {
      expect(parseAccepted(text)).toBeUndefined();
    },
  );
});

describe("a group that is new", () => {
  const fresh = { bootstrapped: false, identity: undefined };
  const none = without("none");
  test.each<[string, Group["members"], string]>([
    ["waits until all exist", [none, none, undefined], "wait: Bootstrapping"],
    ["begins with the first", [none, none, none], "initialize 0 in run-none"],
    ["continues with the one that has begun", [none, without("unborn"), none], "bootstrap 1 in run-unborn"],
    [
      "continues with the one that was alone in it",
      [none, has(4), without("incomplete")],
      "bootstrap 1 in run-4",
    ],
    ["uses data that existed before", [has(4), has(5), has(5)], "bootstrap 1 in run-5"],
    [
      "refuses data of two histories",
      [has(4), has(5), has(5, { position: { uuid: THERE, seqno: 5n } })],
      "refuse: RecoveryRefused",
    ],
  ])("%s", (_, members, want) => {
    expect(textOf(decide(group(members, fresh)))).toBe(want);
  });
});

/** A member as it really is, of which the operator sees what it queries. */
interface Member {
  up: boolean;
  serving: boolean;
  seqno: number;
  data: Waiting["data"];
  run: number;
}

/** Pseudorandom numbers, the same ones every time. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A group of three with crashes, orders and writes; nothing else recovers it. */
class World {
  readonly members: Member[] = Array.from({ length: 3 }, () => ({
    up: true,
    serving: false,
    seqno: -1,
    data: "none",
    run: 0,
  }));
  /** Last transaction that was acknowledged. */
  acknowledged = 0;
  bootstrapped = false;
  /** Databases that were initialized. */
  initialized = 0;
  readonly #random: (below: number) => number;

  constructor(seed: number) {
    this.#random = chance(seed);
  }

  step(): void {
    const member = this.members[this.#random(3)] as Member;
    const kind = this.#random(14);
    if (kind === 0) {
      this.crash(member);
    } else if (kind < 4) {
      this.restart(member);
    } else if (kind < 8) {
      this.join(member);
    } else if (kind < 10) {
      this.write();
    } else {
      this.operate(this.#random(4) === 0 ? this.#random(3) : undefined);
    }
  }

  crash(member: Member): void {
    member.up = false;
    member.serving = false;
  }

  restart(member: Member): void {
    if (!member.up) {
      Object.assign(member, { up: true, run: member.run + 1 });
    }
  }

  /** Whoever serves gives what the member lacks; it is interrupted now and then. */
  join(member: Member): void {
    const donor = this.members.find(({ serving }) => serving);
    if (!donor || !member.up || member.serving) {
      return;
    }
    if (this.#random(4) === 0) {
      if (this.#random(2) === 0) {
        Object.assign(member, { data: "incomplete", seqno: -1 });
      }
      this.crash(member);
      return;
    }
    Object.assign(member, { serving: true, seqno: donor.seqno, data: "whole" });
    if (this.members.every(({ serving }) => serving)) {
      this.bootstrapped = true;
    }
  }

  /** Acknowledged once the majority that there is has it; some may not have written it when they crash. */
  write(): void {
    const there = this.members.filter(({ serving }) => serving);
    const [writer] = there;
    if (!writer || !this.bootstrapped) {
      return;
    }
    this.acknowledged = writer.seqno + 1;
    const lag = this.#random(3) === 0;
    for (const member of there) {
      if (member === writer || !lag) {
        member.seqno = this.acknowledged;
      }
    }
    // A member that did not write it in time is lost with the next step, or catches up.
    if (lag && this.#random(2) === 0) {
      for (const member of there) {
        this.crash(member);
      }
    } else {
      for (const member of there) {
        member.seqno = this.acknowledged;
      }
    }
  }

  operate(unseen: number | undefined): void {
    const seen = this.members.map((member, ordinal) =>
      ordinal === unseen || !member.up ? undefined : view(member),
    );
    const decision = decide({ members: seen, bootstrapped: this.bootstrapped, identity: HERE, stuck: false });
    if (decision.kind !== "order") {
      return;
    }
    const member = this.members[decision.member] as Member;
    expect(unseen, "somebody was not asked").toBeUndefined();
    expect(this.members.some(({ serving }) => serving)).toBe(false);
    expect(decision.run).toBe(`run-${member.run}`);
    if (decision.order === "initialize") {
      this.initialized += 1;
      member.seqno = 0;
      member.data = "whole";
    }
    expect(member.seqno).toBe(Math.max(...this.members.map(({ seqno }) => seqno)));
    expect(member.seqno).toBeGreaterThanOrEqual(this.acknowledged);
    member.serving = true;
  }
}

function view({ serving, seqno, data, run }: Member): MemberState {
  const position = { uuid: HERE, seqno: BigInt(Math.max(seqno, 0)) };
  return serving
    ? runs(seqno, { run: `run-${run}`, primary: true, ready: true, state: 4, position })
    : {
        phase: "waiting",
        run: `run-${run}`,
        data,
        safe: false,
        ...(data === "whole" ? { position } : {}),
      };
}

test("whatever happens, a group begins once and never loses what was acknowledged", () => {
  let recovered = 0;
  for (let seed = 1; seed <= 400; seed += 1) {
    const world = new World(seed);
    for (let i = 0; i < 200; i += 1) {
      world.step();
    }
    expect(world.initialized, `seed ${seed}`).toBeLessThanOrEqual(1);
    // Left alone with an operator that sees all of them, it comes back.
    for (const member of world.members) {
      world.restart(member);
    }
    world.operate(undefined);
    expect(
      world.members.some(({ serving }) => serving),
      `seed ${seed}`,
    ).toBe(true);
    recovered += world.acknowledged > 0 ? 1 : 0;
  }
  // The worlds are worth something: most of them had writes.
  expect(recovered).toBeGreaterThan(200);
});
