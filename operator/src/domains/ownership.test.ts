import { expect, test } from "vitest";
import { exampleClaim } from "../../../test/kit/operator/claims.ts";
import { challengeOf, evaluateAnswer, type TxtAnswer } from "./ownership.ts";

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
