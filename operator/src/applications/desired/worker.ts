import { commandFields, confinementFields, environmentFields, imageFields } from "../../workload/pod.ts";
import type { HttpApp } from "../app.ts";

/** Whether an instance shows that it is ready by running alone. */
export const isUnprobed = ({ port, readinessCommand }: HttpApp): boolean =>
  port === undefined && readinessCommand === undefined;

/** The container of a worker. It is sent SIGTERM when it is to stop: nothing routes to it, so there is nothing to wait for before. */
export function workerContainer(app: HttpApp) {
  const { readinessCommand, resources } = app;
  return {
    ...imageFields(app),
    ...commandFields(app.command),
    ...environmentFields(app),
    resources,
    ...(readinessCommand === undefined
      ? {}
      : {
          readinessProbe: {
            exec: { command: [...readinessCommand] },
            periodSeconds: 5,
            timeoutSeconds: 5,
            failureThreshold: 2,
          },
        }),
    ...confinementFields(app),
  };
}
