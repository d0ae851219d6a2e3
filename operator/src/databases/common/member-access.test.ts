import { expect, test, vi } from "vitest";
import { podOf } from "../../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import type { Node } from "../../metrics/nodes.ts";
import type { LivePod } from "../driver.ts";
import { MemberAccess } from "./member-access.ts";

const nodes = (status: string) => {
  const node: Node = { metadata: { name: "a" }, status: { conditions: [{ type: "Ready", status }] } };
  return { get: (_: unknown, name: string) => (name === "a" ? node : undefined) };
};
const pod = (uid: string, namespace = "slipway-org-alpha"): LivePod => {
  const { metadata, ...rest } = podOf(0);
  return { ...rest, metadata: { ...metadata, uid, namespace }, spec: { nodeName: "a" } };
};

test("no command is run on a node that is not ready", async () => {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const command = vi.fn(async () => "answer");
  for (const status of ["Unknown", "False"]) {
    await expect(new MemberAccess(nodes(status), clock).run(pod("1"), command)).rejects.toThrow(
      "node is not ready",
    );
  }
  expect(command).not.toHaveBeenCalled();
  expect(await new MemberAccess(nodes("True"), clock).run(pod("1"), command)).toBe("answer");
});

test("members that did not answer are queried four at a time, two of one organization, until they answer", async () => {
  const clock = new FakeClock("2026-03-01T00:00:00Z");
  const members = new MemberAccess(nodes("True"), clock);
  const hung: ((answer: string | undefined) => void)[] = [];
  const ask = (one: LivePod) =>
    members.run(
      one,
      () =>
        new Promise<string>((resolve, reject) => {
          hung.push((answer) => (answer === undefined ? reject(new Error("timed out")) : resolve(answer)));
        }),
    );
  const all = ["alpha", "beta", "gamma"].flatMap((name) =>
    [1, 2, 3].map((n) => pod(`${name}-${n}`, `slipway-org-${name}`)),
  );
  const askAll = async (answer?: string) => {
    const asked = Promise.allSettled(all.map(ask));
    const count = hung.length;
    await clock.advance(9_000);
    for (const end of hung.splice(0)) {
      end(answer);
    }
    return { count, results: await asked };
  };
  expect((await askAll()).count, "nothing is known of anybody").toBe(9);
  const { count, results } = await askAll();
  expect(count).toBe(4);
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(9);
  expect((await askAll("answer")).count).toBe(4);
  expect((await askAll("answer")).count, "those that answered, and four of the others").toBe(8);
});
