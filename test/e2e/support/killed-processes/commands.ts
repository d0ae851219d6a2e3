import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { ExecClient, ExecRefused } from "../../../kit/api-server/exec-client.ts";
import { uniqueName } from "../api.ts";
import { UNAVAILABLE } from "../killer.ts";
import { runningPods } from "../nodes.ts";
import { namespaceOf, stack } from "../stack.ts";
import { ROUNDS, type World } from "./world.ts";

const COMMANDS = 10 * ROUNDS;

/** No session came about, since what would serve it is ending or restarts. @throws what it was refused for otherwise */
function unlessUnavailable(error: unknown): undefined {
  if (error instanceof ExecRefused && !UNAVAILABLE.includes(error.status)) {
    throw error;
  }
}

/**
 * Commands in an instance: a session ends with the API server that it goes through, the next one is whole. A command is begun once for each
 * session, whether its end was seen or not.
 */
export async function commands({ counter, application, execKey }: World): Promise<string> {
  const { id } = await application("commands");
  const headers = { "x-api-key": execKey };
  let [whole, cut] = [0, 0];
  while (whole < COMMANDS) {
    const name = uniqueName("command");
    const [pod] = await runningPods(namespaceOf(stack.organization), `slipway.dev/project=${id}`);
    const instance = pod?.metadata?.name ?? "";
    const command = counter.command(name, 2_000, 7);
    const outcome = await ExecClient.run(stack.url, id, instance, { command }, headers).catch(
      unlessUnavailable,
    );
    const begun = (await counter.reports(name)).length;
    if (outcome?.exitCode === undefined) {
      cut += 1;
      expect(begun).toBeLessThanOrEqual(1);
      expect(cut, "more sessions are cut than there are kills").toBeLessThan(COMMANDS);
      await sleep(500);
    } else {
      whole += 1;
      expect([outcome.exitCode, begun]).toEqual([7, 1]);
    }
  }
  return `${whole} commands were whole, ${cut} cut`;
}
