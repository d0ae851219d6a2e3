import { describe, expect, test } from "vitest";
import { databaseOf, exampleDatabase, podOf } from "../../../../test/kit/databases/examples.ts";
import type { LivePod } from "../driver.ts";
import { nodeAddress } from "./names.ts";
import {
  choosePrimary,
  detached,
  type MemberState,
  parseMemberState,
  relabelled,
  silentPrimary,
} from "./topology.ts";

const version = "9.1.2";
const leads = (followers: number): MemberState => ({ version, role: "primary", followers, linked: true });
const follows = (ordinal: number): MemberState => ({
  version,
  role: "replica",
  followers: 0,
  follows: nodeAddress(three, ordinal),
  linked: true,
});

const valkey = (plan: string) =>
  databaseOf({
    project: exampleDatabase({
      type: "valkey",
      plan,
      version: "9.1.1",
      profile: "key_value",
      instances: undefined,
    }),
  });
const three = valkey("db-premium_plus");
const one = valkey("db-premium");

/** MemberStates of the pods from 0 on; undefined for one that does not answer. */
function answered(
  facts: readonly (MemberState | undefined)[],
  pods: readonly LivePod[],
): Map<LivePod, MemberState> {
  return new Map(
    facts.flatMap((fact, ordinal): [LivePod, MemberState][] => {
      const pod = pods[ordinal];
      return fact && pod ? [[pod, fact]] : [];
    }),
  );
}

const bare = () => [podOf(0), podOf(1), podOf(2)];
const labelled = () => [
  podOf(0, { role: "primary" }),
  podOf(1, { role: "replica" }),
  podOf(2, { role: "replica" }),
];

describe("the primary", () => {
  test.each([
    ["is the one that others follow", [leads(2), follows(0), follows(0)], labelled(), "shop-0"],
    ["is the one that has taken over", [undefined, leads(1), follows(1)], labelled(), "shop-1"],
    [
      "is not who came back as one and is followed by nobody",
      [leads(0), leads(1), follows(1)],
      labelled(),
      "shop-1",
    ],
    ["is nobody while each of two has a follower", [leads(1), leads(1), undefined], labelled(), undefined],
    ["is the one that most follow", [leads(2), leads(1), follows(0)], labelled(), "shop-0"],
    [
      "is the one that others report to follow, whatever one that is cut off reports",
      [leads(2), leads(1), follows(1)],
      labelled(),
      "shop-1",
    ],
    ["stays when its replicas are away", [leads(0), undefined, undefined], labelled(), "shop-0"],
    ["stays not when another one claims to be it", [leads(0), leads(0), undefined], labelled(), undefined],
    ["does not begin without a replica", [leads(0), undefined, undefined], bare(), undefined],
    ["is nobody when nobody claims to be it", [follows(1), follows(0), undefined], labelled(), undefined],
  ] as const)("%s", (_, facts, pods, want) => {
    expect(choosePrimary(three, answered(facts, pods))?.metadata.name).toBe(want);
  });

  test("of one instance is that one, without any replica", () => {
    const pods = [podOf(0)];
    expect(choosePrimary(one, answered([leads(0)], pods))).toBe(pods[0]);
    expect(choosePrimary(one, answered([undefined], pods))).toBeUndefined();
  });
});

describe("a primary that does not answer", () => {
  test.each([
    ["stays while its kubelet reports that it is ready", [undefined, follows(0), follows(0)], true, "shop-0"],
    ["stays not when it is not", [undefined, follows(0), follows(0)], false, undefined],
    ["stays not when another one claims to be it", [undefined, leads(0), follows(0)], true, undefined],
    ["is none when it memberStates that it is none", [follows(1), undefined, undefined], true, undefined],
  ] as const)("%s", (_, facts, ready, want) => {
    const pods = [podOf(0, { role: "primary", ready }), ...labelled().slice(1)];
    expect(silentPrimary(pods, answered(facts, pods))?.metadata.name).toBe(want);
  });
});

describe("labels", () => {
  const changes = (
    pods: readonly LivePod[],
    primary: number | undefined,
    facts: (MemberState | undefined)[],
  ) =>
    relabelled(pods, primary === undefined ? undefined : pods[primary], answered(facts, pods)).map(
      ({ pod, role }) => `${pod.metadata.name} ${role}`,
    );

  test("are taken from the old primary before the new one gets them, also when it does not answer", () => {
    expect(changes(labelled(), 1, [undefined, leads(1), follows(1)])).toEqual([
      "shop-0 replica",
      "shop-1 primary",
    ]);
  });

  test("are not changed when they are right, or while nobody is the primary", () => {
    expect(changes(labelled(), 0, [leads(2), follows(0), follows(0)])).toEqual([]);
    expect(changes(labelled(), undefined, [undefined, follows(0), follows(0)])).toEqual([]);
  });

  test("are given to new pods that answer", () => {
    expect(changes(bare(), 0, [leads(1), follows(0), undefined])).toEqual([
      "shop-1 replica",
      "shop-0 primary",
    ]);
  });
});

describe("detached", () => {
  const names = (primary: number | undefined, facts: (MemberState | undefined)[]) => {
    const pods = bare();
    const chosen = primary === undefined ? undefined : pods[primary];
    return detached(three, chosen, answered(facts, pods)).map(({ metadata }) => metadata.name);
  };

  test("is who follows another one, or came back as a primary", () => {
    expect(names(1, [leads(0), leads(1), follows(1)])).toEqual(["shop-0"]);
    expect(names(1, [follows(2), leads(1), follows(1)])).toEqual(["shop-0"]);
  });

  test("is nobody who follows, who does not answer, or while there is no primary", () => {
    expect(names(1, [follows(1), leads(2), undefined])).toEqual([]);
    expect(names(undefined, [leads(0), leads(0), undefined])).toEqual([]);
  });
});

describe("INFO", () => {
  test("of a primary counts the replicas that are up to date", () => {
    const text = [
      "# Server",
      "redis_version:7.2.4",
      "valkey_version:9.1.2",
      "# Replication",
      "role:master",
      "connected_slaves:2",
      "slave0:ip=shop-node-1.alpha.svc,port=6379,state=online,offset=140,lag=0,type=replica",
      "slave1:ip=shop-node-2.alpha.svc,port=6379,state=wait_bgsave,offset=0,lag=0,type=replica",
      "",
    ].join("\r\n");
    expect(parseMemberState(text)).toEqual({ version: "9.1.2", role: "primary", followers: 1, linked: true });
  });

  test("of a replica has the address that it follows, and whether it is linked", () => {
    const text =
      "valkey_version:9.1.2\nrole:slave\nmaster_host:shop-node-0.alpha.svc\nmaster_link_status:down\n";
    expect(parseMemberState(text)).toMatchObject({
      role: "replica",
      follows: "shop-node-0.alpha.svc",
      linked: false,
    });
  });

  test("is not an error", () => {
    expect(parseMemberState("NOAUTH Authentication required.\n")).toBeUndefined();
  });
});
