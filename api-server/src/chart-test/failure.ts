import type { Answer } from "./client.ts";

/** Why the test fails, and what the person who runs it should check. */
export class TestFailure extends Error {
  override readonly name = "TestFailure";
  readonly check: string;

  constructor(message: string, check: string) {
    super(message);
    this.check = check;
  }
}

/** The page that has the commands. */
const PAGE = "the section `helm test` of the chart's README";

const CHECKS: Readonly<Record<number, string>> = {
  400: "tests.application and tests.job of the values: plan, image, port",
  401: `the key in the Secret of tests.apiKeySecret: it is no key of this platform, or was revoked (${PAGE})`,
  402: "the organization: it is blocked; `admin organization unblock` ends that",
  403: `the grants of the key: it needs all that are in ${PAGE}`,
  409: "the organization's limits, and the capacity of the plans in tests.application and tests.job",
  429: "rateLimitScale of the values, and who else sends requests with the organization's keys",
};

/** What an answer that was not expected means, and what to check. */
export function refusal(what: string, answer: Answer): TestFailure {
  const check = CHECKS[answer.status] ?? "kubectl logs deploy/slipway-api-server and deploy/slipway-operator";
  return new TestFailure(`${what}: ${describe(answer)}`, check);
}

/** An answer in a line. */
export function describe({ status, code, message }: Answer): string {
  return status === 0
    ? `the API does not answer: ${message}`
    : `${[status, code].filter(Boolean).join(" ")}: ${message}`;
}
