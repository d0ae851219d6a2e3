import { once } from "node:events";
import { createLogger } from "@slipway/process";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { SocketPairs } from "../../../test/kit/api-server/socket-pairs.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { type ExecLimits, ExecSessions } from "./sessions.ts";

const pairs = new SocketPairs();
afterEach(() => pairs.closeAll());

const project = (id: string, organizationId = "acme") =>
  ({ id, organizationId, resource: { metadata: { uid: `${organizationId}-${id}` } } }) as ApiProject;

function setup(limits: Partial<ExecLimits> = {}) {
  const blocked = new Set<string>();
  const queries: (readonly string[])[] = [];
  const deleted = new Set<string>();
  const sessions = new ExecSessions({
    projects: { find: (organizationId, id) => (deleted.has(id) ? undefined : project(id, organizationId)) },
    listBlocked: async (ids) => {
      queries.push(ids);
      return ids.filter((id) => blocked.has(id));
    },
    logger: createLogger("test", "silent"),
    limits: { recheckMs: 20, graceMs: 200, ...limits },
  });
  const open = async (of: ApiProject, recheck: () => Promise<void> = async () => undefined) => {
    const place = await sessions.reserve({ project: of, recheck });
    const [client, user] = await pairs.open();
    const [node, upstream] = await pairs.open();
    const closed = once(user, "close").then(([code, reason]) => `${code} ${reason}`);
    place.begin({ client, upstream, streams: { stdin: true, tty: false } }, () => undefined);
    return { user, node, closed };
  };
  return { sessions, open, blocked, queries, deleted };
}

const refusal = (session: Promise<unknown>) =>
  session.then(
    () => "",
    ({ code, extra }) => ({ code, ...extra }),
  );

describe("the sessions of a process", () => {
  it("are bounded by project, by organization and in all, and a place that ends is free", async () => {
    // Four of an organization, two of a project.
    const { sessions } = setup({ maxSessions: 16 });
    const reserve = (id: string, organization: string) =>
      sessions.reserve({ project: project(id, organization), recheck: async () => undefined });
    const [first] = [await reserve("a", "acme"), await reserve("a", "acme")];
    const code = "EXEC_SESSION_LIMIT_REACHED";
    expect(await refusal(reserve("a", "acme"))).toEqual({ code, scope: "project", limit: 2 });
    // A project of another organization is another one.
    await reserve("a", "umbrella");
    await reserve("b", "acme");
    await reserve("b", "acme");
    expect(await refusal(reserve("c", "acme"))).toEqual({ code, scope: "organization", limit: 4 });
    first.release();
    first.release();
    await reserve("c", "acme");
    for (const organization of ["o1", "o2", "o3"]) {
      for (const id of ["a", "b", "a", "b"]) {
        await refusal(reserve(id, organization));
      }
    }
    expect(sessions.size).toBe(16);
    expect(await refusal(reserve("a", "o4"))).toEqual({ code: "SERVER_BUSY" });
  });

  it("are all checked by one query of the ledger, in which theirs alone end", async () => {
    const { open, blocked, queries } = setup();
    const kept = await open(project("a", "acme"));
    const other = await open(project("a", "umbrella"));
    const same = await open(project("b", "umbrella"));
    queries.splice(0);
    blocked.add("umbrella");
    expect(await Promise.all([other.closed, same.closed])).toEqual([
      "4402 EXEC_ORGANIZATION_BLOCKED",
      "4402 EXEC_ORGANIZATION_BLOCKED",
    ]);
    expect(kept.user.readyState).toBe(WebSocket.OPEN);
    // One in two seconds, whatever the interval of the other checks.
    expect(queries.length).toBeLessThanOrEqual(2);
    expect(new Set(queries.flat())).toEqual(new Set(["acme", "umbrella"]));
  });

  it("end once their caller is refused, or their project is gone, and go on while neither can be known", async () => {
    const { open, deleted } = setup();
    let isRefused = false;
    const recheck = async () => {
      if (isRefused) {
        throw new Error("refused");
      }
    };
    const [one, two, three] = [
      await open(project("a"), recheck),
      await open(project("b")),
      await open(project("c")),
    ];
    isRefused = true;
    deleted.add("b");
    expect(await Promise.all([one.closed, two.closed])).toEqual([
      "4403 EXEC_ACCESS_REVOKED",
      "4404 EXEC_PROJECT_DELETED",
    ]);
    expect(three.user.readyState).toBe(WebSocket.OPEN);
  });

  it("end with the process, those too whose client does not read", async () => {
    const { sessions, open } = setup();
    const [reads, stalls] = [await open(project("a")), await open(project("b"))];
    stalls.user.pause();
    await sessions.endAll();
    expect(await reads.closed).toBe("1001 EXEC_SERVER_ENDING");
    expect(sessions.size).toBe(0);
    expect(await refusal(open(project("a")))).toEqual({ code: "SERVER_BUSY" });
  });
});
