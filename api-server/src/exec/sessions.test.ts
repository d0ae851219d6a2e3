import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createLogger } from "@slipway/process";
import { type Logger, pino } from "pino";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { SocketPairs } from "../../../test/kit/api-server/socket-pairs.ts";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { auditedEnd } from "./audited.ts";
import { type ExecLimits, ExecSessions } from "./sessions.ts";

const pairs = new SocketPairs();
afterEach(() => pairs.closeAll());

const project = (id: string, organizationId = "acme") =>
  ({ id, organizationId, resource: { metadata: { uid: `${organizationId}-${id}` } } }) as ApiProject;

/** What is other than usual. */
interface Faults {
  /** In place of the answer of the query of blocked organizations. */
  listBlocked?: (ids: readonly string[]) => Promise<readonly string[]>;
  logger?: Logger;
  onEnd?: (code: string) => void;
}

function setup(limits: Partial<ExecLimits> = {}, faults: Faults = {}) {
  const blocked = new Set<string>();
  const queries: (readonly string[])[] = [];
  /** Queries of reservations: those are answered. */
  let opened = 0;
  const deleted = new Set<string>();
  const sessions = new ExecSessions({
    projects: { find: (organizationId, id) => (deleted.has(id) ? undefined : project(id, organizationId)) },
    listBlocked: async (ids) => {
      queries.push(ids);
      if (faults.listBlocked && queries.length > opened) {
        return faults.listBlocked(ids);
      }
      return ids.filter((id) => blocked.has(id));
    },
    logger: faults.logger ?? createLogger("test", "silent"),
    onEnd: (code) => faults.onEnd?.(code),
    limits: { recheckMs: 20, graceMs: 200, ...limits },
  });
  const open = async (of: ApiProject, recheck: () => Promise<void> = async () => undefined) => {
    opened = queries.length + 1;
    const place = await sessions.reserve({ project: of, recheck });
    const [client, user] = await pairs.open();
    const [node, upstream] = await pairs.open();
    const closed = once(user, "close").then(([code, reason]) => `${code} ${reason}`);
    place.begin({ client, upstream, streams: { stdin: true, tty: false } }, () => undefined);
    return { user, node, client, upstream, closed };
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
        throw failures.credentialInvalid();
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

  // Shows: docs/exec.md#ends: 1013 | `EXEC_ACCESS_UNKNOWN`
  // Shows: docs/exec.md#who-may: a session goes on while the ledger
  it("go on while their callers cannot be checked, for a bounded time", async () => {
    const { open } = setup({ uncheckedMs: 3_000 });
    const errors = [failures.ledgerUnavailable(), failures.rateLimitExceeded(1), new Error("the issuer")];
    const startedAt = performance.now();
    const sessions = [];
    for (const error of errors) {
      sessions.push(await open(project(`${sessions.length}`), async () => Promise.reject(error)));
    }
    // One check in time suffices.
    let checks = 0;
    const kept = await open(project("kept"), async () => {
      checks += 1;
      if (checks % 5 !== 0) {
        throw failures.ledgerUnavailable();
      }
    });
    const expected = errors.map(() => "1013 EXEC_ACCESS_UNKNOWN");
    expect(await Promise.all(sessions.map(({ closed }) => closed))).toEqual(expected);
    expect(performance.now() - startedAt).toBeGreaterThan(3_000);
    expect(kept.user.readyState).toBe(WebSocket.OPEN);
  });

  it("end when blocked organizations cannot be read for as long, which is logged", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
    const listBlocked = () => Promise.reject(new Error("no ledger"));
    const { open } = setup({ uncheckedMs: 1_000 }, { listBlocked, logger });
    expect(await (await open(project("a"))).closed).toBe("1013 EXEC_ACCESS_UNKNOWN");
    expect(lines.join("")).toContain("no ledger");
  });

  it("end by what the ledger answers however late, and it is not asked again meanwhile", async () => {
    const late = Promise.withResolvers<readonly string[]>();
    const { open, queries } = setup({}, { listBlocked: () => late.promise });
    const { closed } = await open(project("a"));
    await sleep(4_500);
    expect(queries).toHaveLength(2);
    late.resolve(["acme"]);
    expect(await closed).toBe("4402 EXEC_ORGANIZATION_BLOCKED");
  });

  it("are each checked on their own: one without an answer keeps no other", async () => {
    const { open } = setup();
    let isRefused = false;
    await open(project("a"), () => new Promise(() => undefined));
    const other = await open(project("b"), async () => {
      if (isRefused) {
        throw failures.credentialInvalid();
      }
    });
    await sleep(100);
    isRefused = true;
    expect(await other.closed).toBe("4403 EXEC_ACCESS_REVOKED");
  });

  it("give a client that reads slowly the reason of their end, and all of a command that has ended", async () => {
    const { open } = setup({ graceMs: 5_000 });
    let isRefused = false;
    const recheck = async () => {
      if (isRefused) {
        throw failures.credentialInvalid();
      }
    };
    const [revoked, ended] = [await open(project("a"), recheck), await open(project("b"), recheck)];
    const outputs: Buffer[] = [];
    ended.user.on("message", (data) => outputs.push(data as Buffer));
    revoked.user.pause();
    // Its connection takes nothing.
    const stalled = (ended.client as unknown as { _socket: Socket })._socket;
    stalled.cork();
    ended.node.send(Buffer.from("\u0001output"));
    ended.node.send(Buffer.from('\u0003{"status":"Success"}'));
    ended.node.close();
    await once(ended.upstream, "close");
    isRefused = true;
    await sleep(500);
    revoked.user.resume();
    stalled.uncork();
    expect(await revoked.closed).toBe("4403 EXEC_ACCESS_REVOKED");
    expect(await ended.closed).toBe("1000 EXEC_EXITED");
    expect(outputs.map(String)).toEqual(["\u0001output", '\u0003{"status":"Success"}']);
  });

  it("count what a client has left before its connection was a WebSocket, and end its command", async () => {
    const ends: unknown[] = [];
    const { sessions } = setup({}, { onEnd: (code) => ends.push(code) });
    const place = await sessions.reserve({ project: project("a"), recheck: async () => undefined });
    const [node, upstream] = await pairs.open();
    const lost = once(node, "close");
    place.abandon(upstream, (end) => ends.push(auditedEnd(end)));
    await lost;
    expect(ends).toEqual([
      "EXEC_CLIENT_CLOSED",
      'EXEC_CLIENT_CLOSED {"exit_code":null,"stdin_bytes":0,"stdout_bytes":0,"stderr_bytes":0}',
    ]);
    expect(sessions.size).toBe(0);
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
