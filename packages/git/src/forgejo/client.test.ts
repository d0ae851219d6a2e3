import { expect, it } from "vitest";
import type { FetchRequest, FetchResponse, SsrfSafeFetch } from "../net/fetch.ts";
import { ForgejoClient } from "./client.ts";

const SHA = "a".repeat(40);

/** A client of a server that answers about commits with these statuses, the last of them for ever; 0 is no answer. */
function clientOf(...statuses: number[]) {
  let asked = 0;
  const send = async (url: string, { signal }: FetchRequest): Promise<FetchResponse> => {
    const repository = { id: 1, full_name: "acme/shop", default_branch: "main", private: true };
    if (!url.includes("/commits?")) {
      return { status: 200, headers: {}, text: JSON.stringify(repository) } as FetchResponse;
    }
    const status = statuses[Math.min(asked, statuses.length - 1)] ?? 200;
    asked += 1;
    if (status === 0) {
      return await new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason as Error));
      });
    }
    const text = status === 200 ? JSON.stringify([{ sha: SHA, commit: { message: "First" } }]) : "{}";
    return { status, headers: {}, text } as FetchResponse;
  };
  const fetch = { send } as unknown as SsrfSafeFetch;
  const client = new ForgejoClient({
    ...{ fetch, instanceUrl: "https://git.example", username: "u", token: "t" },
    emptyRetries: { pausesMs: [1, 1, 1, 1], withinMs: statuses.includes(0) ? 20 : 60_000 },
  });
  return { client, asked: () => asked };
}

const isPushed = true;
const failing = (code: string) => expect.objectContaining({ code }) as unknown;

it("asks again, a few times, about a commit of a repository that was just pushed to", async () => {
  const pushed = clientOf(409, 409, 200);
  expect(await pushed.client.commit("1", "main", { isPushed })).toEqual({ sha: SHA, title: "First" });
  expect(pushed.asked()).toBe(3);
  const empty = clientOf(409);
  await expect(empty.client.commit("1", "main", { isPushed })).rejects.toEqual(failing("RefNotFound"));
  expect(empty.asked()).toBe(5);
});

it("waits no longer for a server that answers slowly then", { timeout: 5_000 }, async () => {
  const slow = clientOf(409, 0);
  await expect(slow.client.commit("1", "main", { isPushed })).rejects.toEqual(failing("RefNotFound"));
  expect(slow.asked()).toBe(2);
});

it("asks once where nothing was pushed, as polls do, which come again", async () => {
  const empty = clientOf(409);
  await expect(empty.client.commit("1", "main")).rejects.toEqual(failing("RefNotFound"));
  expect(empty.asked()).toBe(1);
});

it("does not ask again after another failure", async () => {
  for (const [statuses, asked] of [
    [[503], 1],
    [[409, 503], 2],
  ] as const) {
    const { client, asked: count } = clientOf(...statuses);
    await expect(client.commit("1", "main", { isPushed })).rejects.toEqual(failing("ProviderUnavailable"));
    expect(count()).toBe(asked);
  }
});
