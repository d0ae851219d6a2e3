import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** Python runs the decision itself; only what it reads of others is made up. */

const CALL = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("pre_promote", sys.argv[1])
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)
script.WITHIN = 0.3

def outcome(case):
    polls = []
    def select(query):
        if "pg_stat_replication" in query:
            polls.append(1)
            return case["followers"] if len(polls) > case.get("after", 0) else []
        return [str(case["own"])]
    def read(url, headers={}, context=None):
        if url.endswith("/cluster"):
            names = ("pod-0", "pod-1", "pod-2")
            return {"members": [{"name": name, "role": "replica", "api_url": "http://" + name} for name in names]}
        position = case["positions"][url[len("http://"):]]
        if position is None:
            raise TimeoutError("no answer")
        return {"xlog": {"received_location": position, "replayed_location": 1}}
    script.synchronous_state = lambda config_map: (case["former"], case["quorum"])
    script.select, script.read = select, read
    return [script.main("db-sync", "pod-2"), len(polls)]

print(json.dumps([outcome(case) for case in json.loads(sys.argv[2])]))
`;

interface Case {
  readonly is: string;
  readonly former: string | null;
  readonly quorum: readonly string[];
  /** Who follows this member, and after how many observations. */
  readonly followers?: readonly string[];
  readonly after?: number;
  readonly own?: number;
  /** Of members that follow, or no answer. */
  readonly positions?: Readonly<Record<string, number | null>>;
}

function outcomes(cases: readonly Case[]): [exitCode: number, observations: number][] {
  const script = fileURLToPath(new URL("pre-promote.py", import.meta.url));
  const output = execFileSync("python3", ["-B", "-c", CALL, script, JSON.stringify(cases)], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return JSON.parse(output) as [number, number][];
}

const quorum = ["pod-1", "pod-2"];
const follows = { former: "pod-0", quorum, followers: ["pod-1"], own: 100 };

test("a member is promoted as soon as no other can acknowledge for the former primary, and none has more", () => {
  const promoted: readonly (Case & { observations: number })[] = [
    { is: "replication is not synchronous", former: null, quorum: [], observations: 0 },
    { is: "it is the former primary", former: "pod-2", quorum: ["pod-0", "pod-1"], observations: 0 },
    { is: "it alone is in the quorum", former: "pod-0", quorum: ["pod-2"], observations: 0 },
    { is: "the other follows it", ...follows, positions: { "pod-1": 100 }, observations: 1 },
    { is: "the other follows it later", ...follows, after: 2, positions: { "pod-1": 90 }, observations: 3 },
  ];
  expect(outcomes(promoted)).toEqual(promoted.map(({ observations }) => [0, observations]));
});

test("a member is not promoted while another one may have writes that it has not", () => {
  const refused: readonly Case[] = [
    { is: "the other follows the former primary", ...follows, followers: [] },
    { is: "the other has more", ...follows, positions: { "pod-1": 101 } },
    { is: "the other does not answer", ...follows, positions: { "pod-1": null } },
    { is: "one of two follows another", ...follows, quorum: [...quorum, "pod-3"], positions: { "pod-1": 1 } },
  ];
  expect(outcomes(refused).map(([exitCode]) => exitCode)).toEqual(refused.map(() => 1));
});
