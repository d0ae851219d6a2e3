import { challengeValue } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { challengeOf, evaluateAnswer, OwnershipChecks, type TxtAnswer } from "./ownership.ts";

const challenge = challengeOf(exampleClaim());
const other = challengeOf(
  exampleClaim("shop.example.com", {
    spec: { projectRef: { namespace: "slipway-org-beta", name: "p1", uid: "u" } },
  }),
);

test.each<[string, TxtAnswer, string]>([
  ["the value", { records: [challenge.value] }, "proved"],
  ["the value with blanks around it", { records: [` ${challenge.value} `] }, "proved"],
  ["the value among others", { records: ["v=spf1 -all", other.value, challenge.value] }, "proved"],
  ["another organization's value", { records: [other.value] }, "another"],
  ["another organization's value next to the own", { records: [other.value, challenge.value] }, "proved"],
  ["a value of nobody here", { records: [`slipway-verification=${"0".repeat(32)}`] }, "wrong"],
  ["the value with more behind it", { records: [`${challenge.value}0`] }, "wrong"],
  ["the value in capitals", { records: [challenge.value.toUpperCase()] }, "wrong"],
  ["nothing", { records: [] }, "missing"],
  ["no answer", { failed: true }, "failed"],
])("%s", (_, answer, proof) => {
  const scope = { hostname: "shop.example.com", others: () => ["gamma", "beta"] };
  expect(evaluateAnswer(answer, challenge, scope)).toBe(proof);
});

test("the organization that a claim names does not count, only its project's namespace", () => {
  expect(challengeOf(exampleClaim("shop.example.com", { spec: { organization: "beta" } }))).toEqual(
    challenge,
  );
  expect(other.value).not.toBe(challenge.value);
});

const challengeFor = (hostname: string, namespace = "slipway-org-alpha") =>
  challengeOf(
    exampleClaim(hostname, { spec: { projectRef: { namespace, name: "p1", uid: "project-uid" } } }),
  );
const HOST = "shop.example.com";

function setup(
  answer: (name: string) => Promise<TxtAnswer> = async () => ({ records: [] }),
  limits?: { total: number; perKey: number },
) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const ended: string[] = [];
  const checks = new OwnershipChecks({
    clock,
    random: () => 0,
    ...(limits ? { limits } : {}),
    lookup: (name) => {
      asked.push(name);
      return answer(name);
    },
  });
  checks.onEnd((hostname) => ended.push(hostname));
  const check = (hostname = HOST, uid = "1") => checks.check(hostname, uid, challengeFor(hostname));
  return { clock, asked, ended, checks, check };
}

describe("OwnershipChecks", () => {
  test("starts a look-up immediately, does not wait for it, and reports its end", async () => {
    const { clock, asked, ended, check } = setup();
    expect(check()).toEqual({ proof: undefined });
    expect(asked).toEqual([`_slipway-challenge.${HOST}`]);
    await clock.advance(0);
    expect(ended).toEqual([HOST]);
    expect(check()).toEqual({ proof: "missing", againInMs: 15_000 });
  });

  test("looks up once however often it is called, and again only when the pause is over", async () => {
    const { clock, asked, check } = setup();
    for (let i = 0; i < 5; i += 1) {
      check();
    }
    await clock.advance(14_999);
    check();
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    check();
    expect(asked).toHaveLength(2);
  });

  test("pauses longer each time, up to five minutes", async () => {
    const { clock, check } = setup();
    const pauses: (number | undefined)[] = [];
    for (let i = 0; i < 8; i += 1) {
      check();
      await clock.advance(0);
      const { againInMs = 0 } = check();
      pauses.push(againInMs / 1_000);
      await clock.advance(againInMs);
    }
    expect(pauses).toEqual([15, 30, 60, 120, 240, 300, 300, 300]);
  });

  test("adds up to a quarter by chance", async () => {
    const clock = new FakeClock();
    const checks = new OwnershipChecks({ clock, random: () => 1, lookup: async () => ({ failed: true }) });
    checks.check(HOST, "1", challengeFor(HOST));
    await clock.advance(0);
    expect(checks.check(HOST, "1", challengeFor(HOST))).toEqual({ proof: "failed", againInMs: 18_750 });
  });

  test("keeps what was proved until it is forgotten", async () => {
    const { clock, asked, check, checks } = setup(async () => ({ records: [challengeFor(HOST).value] }));
    check();
    await clock.advance(600_000);
    expect(check()).toEqual({ proof: "proved" });
    expect(asked).toHaveLength(1);
    checks.forget(HOST);
    check();
    expect(asked).toHaveLength(2);
  });

  test("looks up again what is proved, where configured", async () => {
    const clock = new FakeClock();
    let records = [challengeFor(HOST).value];
    const proofs = new OwnershipChecks({
      clock,
      random: () => 0,
      lookup: async () => ({ records }),
      retry: { baseMs: 86_400_000, maxMs: 86_400_000 },
      repeats: true,
    });
    const check = () => proofs.check(HOST, "1", challengeFor(HOST));
    check();
    await clock.advance(0);
    expect(check()).toEqual({ proof: "proved", againInMs: 86_400_000 });
    records = [];
    await clock.advance(86_400_000);
    check();
    await clock.advance(0);
    expect(check().proof).toBe("missing");
  });

  test("finds another organization's proof where that one wants the hostname", async () => {
    const clock = new FakeClock();
    const records = [challengeValue("beta", HOST)];
    let contenders: string[] = [];
    const checks = new OwnershipChecks({
      clock,
      random: () => 0,
      lookup: async () => ({ records }),
      contenders: () => contenders,
    });
    const check = () => checks.check(HOST, "1", challengeFor(HOST));
    check();
    await clock.advance(0);
    expect(check().proof).toBe("wrong");
    contenders = ["gamma", "beta"];
    await clock.advance(15_000);
    check();
    await clock.advance(0);
    expect(check().proof).toBe("another");
  });

  test("starts over for a later claim of the hostname, whose predecessor's answer does not count", async () => {
    const answers: ((answer: TxtAnswer) => void)[] = [];
    const { clock, check } = setup(() => new Promise((resolve) => answers.push(resolve)));
    check(HOST, "1");
    check(HOST, "2");
    answers[0]?.({ records: [challengeFor(HOST).value] });
    await clock.advance(0);
    expect(check(HOST, "2")).toEqual({ proof: undefined });
    answers[1]?.({ records: [] });
    await clock.advance(0);
    expect(check(HOST, "2").proof).toBe("missing");
  });

  test("counts a look-up that throws as failed", async () => {
    const { clock, check } = setup(() => Promise.reject(new Error("broken")));
    check();
    await clock.advance(0);
    expect(check().proof).toBe("failed");
  });

  // Shows: docs/resources/domainclaim.md#domainclaim: name servers that do not answer delay no other organization's
  test("of one organization whose name servers do not answer delay nobody else's", async () => {
    const { clock, asked, checks } = setup(() => new Promise(() => undefined));
    for (let index = 0; index < 40; index += 1) {
      const host = `alpha${index}.example`;
      checks.check(host, "1", challengeFor(host));
    }
    checks.check("beta.example", "1", challengeFor("beta.example", "slipway-org-beta"));
    await clock.advance(0);
    expect([asked.length, asked.at(-1)]).toEqual([5, "_slipway-challenge.beta.example"]);
  });

  test("has a bounded number under way, and loses none that waits", async () => {
    const answers: (() => void)[] = [];
    const { clock, asked, check, checks, ended } = setup(
      () => new Promise((resolve) => answers.push(() => resolve({ records: [] }))),
      { total: 2, perKey: 2 },
    );
    const hosts = ["a.example", "b.example", "c.example", "d.example"];
    for (const host of hosts) {
      check(host);
    }
    expect(asked).toHaveLength(2);
    checks.forget("c.example");
    answers[0]?.();
    await clock.advance(0);
    expect(asked.at(-1)).toBe("_slipway-challenge.d.example");
    for (const answer of answers) {
      answer();
    }
    await clock.advance(0);
    expect(ended.toSorted()).toEqual(["a.example", "b.example", "d.example"]);
  });
});
