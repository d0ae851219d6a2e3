import { describe, expect, it } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { type AwsCredentials, RegistryLoginError, withBackoff } from "./ecr.ts";

const credentials: AwsCredentials = {
  accessKeyId: "AKIA",
  secretAccessKey: "s3cr3t",
  region: "eu-west-1",
  accountId: "1",
};
const token = { host: "h", username: "AWS", password: "p", expiresAt: new Date(0) };

function setUp() {
  const clock = new FakeClock();
  const state = { calls: 0, failing: true };
  const login = withBackoff(async () => {
    state.calls += 1;
    if (state.failing) {
      throw new RegistryLoginError("AWS does not answer.", { refused: false, cause: undefined });
    }
    return token;
  }, clock);
  const signal = new AbortController().signal;
  return { clock, state, login: (of = credentials) => login(of, signal) };
}

describe("withBackoff", () => {
  it("tries again after a minute, then after two, and never later than after fifteen", async () => {
    const { clock, state, login } = setUp();
    const waits: number[] = [];
    for (let minute = 0; minute < 60; minute += 1) {
      const before = state.calls;
      await expect(login()).rejects.toThrow("AWS does not answer.");
      if (state.calls > before) {
        waits.push(minute);
      }
      await clock.advance(60_000);
    }
    expect(waits).toEqual([0, 1, 3, 7, 15, 30, 45]);
  });

  it("tries other credentials immediately, and forgets a failure that is over", async () => {
    const { clock, state, login } = setUp();
    await expect(login()).rejects.toThrow();
    await expect(login({ ...credentials, secretAccessKey: "other" })).rejects.toThrow();
    expect(state.calls).toBe(2);
    state.failing = false;
    await clock.advance(60_000);
    await expect(login()).resolves.toEqual(token);
    await expect(login()).resolves.toEqual(token);
    expect(state.calls).toBe(4);
  });
});
