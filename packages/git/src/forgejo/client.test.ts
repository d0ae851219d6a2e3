import { expect, it } from "vitest";
import type { FetchResponse, SsrfSafeFetch } from "../net/fetch.ts";
import { ForgejoClient } from "./client.ts";

const SHA = "a".repeat(40);

/** A client of a server that answers about commits with these statuses, the last of them for ever. */
function clientOf(...statuses: number[]) {
  let asked = 0;
  const send = async (url: string): Promise<FetchResponse> => {
    const repository = { id: 1, full_name: "acme/shop", default_branch: "main", private: true };
    if (!url.includes("/commits?")) {
      return { status: 200, headers: {}, text: JSON.stringify(repository) } as FetchResponse;
    }
    const status = statuses[Math.min(asked, statuses.length - 1)] ?? 200;
    asked += 1;
    const text = status === 200 ? JSON.stringify([{ sha: SHA, commit: { message: "First" } }]) : "{}";
    return { status, headers: {}, text } as FetchResponse;
  };
  const fetch = { send } as unknown as SsrfSafeFetch;
  const client = new ForgejoClient({ fetch, instanceUrl: "https://git.example", username: "u", token: "t" });
  return { client, asked: () => asked };
}

it("asks again, for a few seconds, about a commit of a repository that was just pushed to", async () => {
  const pushed = clientOf(409, 409, 200);
  expect(await pushed.client.commit("1", "main")).toEqual({ sha: SHA, title: "First" });
  expect(pushed.asked()).toBe(3);
  const empty = clientOf(409);
  await expect(empty.client.commit("1", "main")).rejects.toMatchObject({ code: "RefNotFound" });
  expect(empty.asked()).toBe(5);
});

it("does not ask again after another failure", async () => {
  const failing = clientOf(503);
  await expect(failing.client.commit("1", "main")).rejects.toMatchObject({ code: "ProviderUnavailable" });
  expect(failing.asked()).toBe(1);
});
