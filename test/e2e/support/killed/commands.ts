import { expect } from "vitest";
import { ExecClient } from "../../../kit/api-server/exec-client.ts";
import { uniqueName } from "../api.ts";
import { runningPods } from "../nodes.ts";
import { namespaceOf, stack } from "../stack.ts";
import { ROUNDS, type World } from "./world.ts";

/**
 * Commands in an instance: a session ends with the API server that it goes through, the next one is whole. A command is begun once for each
 * session, whether its end was seen or not.
 */
export async function commands({ counter, application, execKey }: World): Promise<string> {
  const { id } = await application("commands");
  const headers = { "x-api-key": execKey };
  let [whole, cut] = [0, 0];
  while (whole < 10 * ROUNDS) {
    const name = uniqueName("command");
    const [pod] = await runningPods(namespaceOf(stack.organization), `slipway.dev/project=${id}`);
    const instance = pod?.metadata?.name ?? "";
    const command = counter.command(name, 2_000, 7);
    const outcome = await ExecClient.run(stack.url, id, instance, { command }, headers).catch(
      () => undefined,
    );
    const begun = (await counter.reports(name)).length;
    if (outcome?.exitCode === undefined) {
      cut += 1;
      expect(begun).toBeLessThanOrEqual(1);
    } else {
      whole += 1;
      expect([outcome.exitCode, begun]).toEqual([7, 1]);
    }
  }
  return `${whole} commands were whole, ${cut} cut`;
}
