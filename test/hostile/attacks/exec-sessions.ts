import { setTimeout as sleep } from "node:timers/promises";
import { httpProject, untilStatus } from "../../e2e/support/api.ts";
import { admin } from "../../e2e/support/organization.ts";
import { ExecClient, ExecRefused } from "../../kit/api-server/exec-client.ts";
import { type Attack, Tally } from "../attack.ts";
import { closed } from "../connections.ts";
import { projectsOf } from "../projects.ts";

/** Runs for ten seconds, and reads nothing of its input. */
const COMMAND = ["/sample-http", "migrate", "http://127.0.0.1:8080/", "10000", "0"];
/** Sessions that are tried concurrently by each side. */
const TRIED = 100;
/** Milliseconds for which messages of a byte are sent, and the bytes of them that wait here for the API. */
const TINY_MS = 10_000;
const MAX_WAITING = 64 * 1024;

export const execSessions: Attack = {
  name: "exec-sessions",
  about:
    "200 sessions of commands of two organizations, which take none of what each is sent, 4 MiB or as many messages of a byte as go through, and whose clients read nothing",
  seconds: 10,
  isShort: true,
  expected: ["101", "409", "429", "503", closed],
  async prepare({ url, organizations }) {
    const sides = await Promise.all(
      organizations.map(async (organization) => {
        const projects = projectsOf(organization);
        const id = await projects.create(httpProject("exec-sessions"));
        await untilStatus(projects.call, id, "running");
        const grant = ["--grant", "project.exec on project:*", "--grant", "project.logs.read on project:*"];
        const created = ["api-key", "create", "--organization", organization.organization_id, ...grant];
        const key = await admin<{ api_key_id: string; api_key: string }>(...created);
        const { body } = await projects.call("GET", `/v1/project/${id}/logs`);
        const [instance = ""] = body.instances as string[];
        return { projects, id, instance, key };
      }),
    );
    return {
      async run(signal) {
        const tally = new Tally();
        const open: ExecClient[] = [];
        const tiny: Promise<void>[] = [];
        const one = async ({ id, instance, key }: (typeof sides)[number], at: number) => {
          const query = { command: COMMAND, stdin: true };
          const session = await ExecClient.connect(url, id, instance, query, {
            "x-api-key": key.api_key,
          }).catch((error: unknown) => error);
          if (!(session instanceof ExecClient)) {
            const isAnswer = session instanceof ExecRefused;
            tally.add(isAnswer ? `${session.status} ${session.body.code ?? ""}`.trim() : closed);
            return;
          }
          tally.add("101");
          session.socket.pause();
          open.push(session);
          if (at % 2 === 1) {
            tiny.push(sendTiny(session, signal));
            return;
          }
          for (let sent = 0; sent < 64; sent += 1) {
            session.send(Buffer.alloc(64 * 1024));
          }
        };
        await Promise.all(sides.flatMap((side) => Array.from({ length: TRIED }, (_, at) => one(side, at))));
        await sleep(10_000, undefined, { signal }).catch(() => undefined);
        await Promise.all(tiny);
        for (const { socket } of open) {
          socket.terminate();
        }
        return tally.answers();
      },
      clean: async () => {
        await Promise.all(
          sides.map(async ({ projects, key }) => {
            await admin("api-key", "revoke", "--id", key.api_key_id);
            await projects.remove();
          }),
        );
      },
    };
  },
};

/** Sends messages of a byte, as fast as the API takes them. */
async function sendTiny({ socket }: ExecClient, signal: AbortSignal): Promise<void> {
  const end = performance.now() + TINY_MS;
  const message = Buffer.from([0, 120]);
  while (!signal.aborted && socket.readyState === socket.OPEN && performance.now() < end) {
    if (socket.bufferedAmount < MAX_WAITING) {
      for (let sent = 0; sent < 1_000; sent += 1) {
        socket.send(Buffer.from(message));
      }
    }
    await sleep(5);
  }
}
