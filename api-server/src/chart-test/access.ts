import { randomBytes } from "node:crypto";
import { createClient } from "./client.ts";
import type { Context } from "./context.ts";
import { refusal, TestFailure } from "./failure.ts";
import { send } from "./poll.ts";

/** That keys decide who may do what. Making and revoking one needs the admin command: docs/privileges.md has the reason. */

/** A key that has the shape of one, and that nobody was given. */
const inventedKey = (): string => `slw_${randomBytes(8).toString("hex")}_${randomBytes(32).toString("hex")}`;

/** The API answers, accepts the key, and refuses an invented one. */
export async function checkKeys({ settings, call, budget, report }: Context): Promise<void> {
  await send(budget, "the list of projects", 200, () => call("GET", "/v1/project?limit=1"));
  report(`the API at ${settings.url} accepts the key`);
  const stranger = createClient(settings.url, inventedKey());
  await send(budget, "the refusal of an invented key", 401, () => stranger("GET", "/v1/project"));
  report("an invented key is refused with 401");
}

/** What the key was not granted is refused. A key with every grant is no failure: a note asks for a narrower one. */
export async function checkGrants({ call, report }: Context, projectId: string): Promise<void> {
  const answer = await call("GET", `/v1/project/${projectId}/envs`);
  if (answer.status === 403) {
    report("what the key is not granted, reading variables, is refused with 403");
  } else if (answer.status === 200) {
    report("note: the key may do more than this test needs; the chart's README names the grants");
  } else {
    throw answer.status === 404
      ? new TestFailure(
          "the project is not found right after its creation",
          "kubectl logs deploy/slipway-operator",
        )
      : refusal("GET envs", answer);
  }
}
