import { labels } from "@slipway/crds";
import { childLabels, type Workload } from "../../workload/app.ts";
import {
  commandFields,
  confinementFields,
  environmentFields,
  imageFields,
  podFields,
} from "../../workload/pod.ts";

/** Seconds that a command which is stopped has to end on its own. */
const STOP_SECONDS = 30;

/** What a command runs in: an application, or a version of it. */
export type CommandApp = Workload & { port?: number };

/**
 * Spec of a pod that runs a command once: with image, variables, resources and confinement of an instance, and without its volume, which
 * instances must not share with it.
 */
export function commandPodSpec(app: CommandApp, command: readonly string[]) {
  const bare = { ...app, volume: undefined };
  return {
    ...podFields(bare, STOP_SECONDS),
    restartPolicy: "Never",
    containers: [
      {
        ...imageFields(bare),
        terminationMessagePolicy: "FallbackToLogsOnError",
        ...commandFields(command),
        ...(app.port === undefined ? {} : { env: [{ name: "PORT", value: String(app.port) }] }),
        ...environmentFields(app),
        resources: app.resources,
        ...confinementFields(bare),
      },
    ],
  };
}

/** Labels of such a pod and of its Job: the project under another label than its own, which would make the pod an instance. */
export function commandLabels(
  app: CommandApp,
  label: typeof labels.preDeploy | typeof labels.oneOffRun,
): Record<string, string> {
  const { [labels.project]: project = "", ...rest } = childLabels(app);
  return { ...rest, [label]: project };
}
