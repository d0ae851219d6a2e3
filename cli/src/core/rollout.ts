import { followBuild } from "@slipway/sdk";
import type { Session } from "./command.ts";

/** Following what begins with a deployment. Each returns the exit code. */

const POLL_MS = 2_000;

/** A build's lines, then the deployment that it leads to. */
export async function followToEnd(
  session: Session,
  id: string,
  buildId: string,
  before: string | undefined,
  timeoutMs: number,
): Promise<number> {
  const deadline = session.now() + timeoutMs;
  const lines = followBuild(session.slipway(), id, buildId, { signal: AbortSignal.timeout(timeoutMs) });
  for (;;) {
    const next = await lines.next();
    if (!next.done) {
      session.output.note(next.value.message);
      continue;
    }
    if (next.value !== "success") {
      session.output.note(await whyBuildEnded(session, id, buildId, next.value));
      return 1;
    }
    return followDeployment(session, id, before, deadline - session.now());
  }
}

async function whyBuildEnded(
  session: Session,
  id: string,
  buildId: string,
  status: string | undefined,
): Promise<string> {
  if (status === undefined) {
    return `build ${buildId} has not ended in time: \`slipway deploy\` no longer follows it`;
  }
  const { data } = await session
    .slipway()
    .GET("/v1/project/{id}/builds/{buildId}", { params: { path: { id, buildId } } });
  const reason = data.error_code === undefined ? "" : `: ${data.error_message ?? ""} (${data.error_code})`;
  return `build ${buildId} has ended as ${status}${reason}`;
}

/** The deployment after another one, until it has ended. */
export async function followDeployment(
  session: Session,
  id: string,
  before: string | undefined,
  timeoutMs: number,
): Promise<number> {
  const deadline = session.now() + timeoutMs;
  let shown: string | undefined;
  for (;;) {
    const params = { path: { id }, query: { limit: 1 } };
    const { data } = await session.slipway().GET("/v1/project/{id}/historic/deployments", { params });
    const [newest] = data;
    const status = newest === undefined || newest.id === before ? undefined : newest.status;
    if (newest !== undefined && status !== undefined && status !== shown) {
      session.output.note(`deployment ${newest.id}: ${status}`);
      shown = status;
    }
    if (newest !== undefined && status !== undefined && ENDS.includes(status)) {
      if (session.output.format !== "table") {
        await session.output.object(newest);
      }
      return status === "succeeded" ? 0 : 1;
    }
    if (session.now() >= deadline) {
      session.output.note(
        "the deployment has not ended in time: it goes on; `slipway projects PROJECT` shows its state",
      );
      return 1;
    }
    await session.sleep(POLL_MS);
  }
}

const ENDS: readonly string[] = ["succeeded", "failed", "superseded"];
