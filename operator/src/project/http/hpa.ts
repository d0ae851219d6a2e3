import type { DesiredObject } from "../../desired.ts";
import { childMetadata, type HttpApp } from "./app.ts";

/** Percent of the requested CPU at which instances are added when the project names no target of its own. */
const DEFAULT_CPU_PERCENT = 80;

/** Adds and removes instances with the load; none for a fixed or a paused project. */
export function horizontalPodAutoscaler(app: HttpApp): DesiredObject | undefined {
  if (!app.autoscaling || app.replicas === 0) {
    return undefined;
  }
  const { min, max, cpuPercent, memoryPercent } = app.autoscaling;
  const utilization = (name: string, averageUtilization: number) => ({
    type: "Resource",
    resource: { name, target: { type: "Utilization", averageUtilization } },
  });
  const cpu = cpuPercent ?? (memoryPercent === undefined ? DEFAULT_CPU_PERCENT : undefined);
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: childMetadata(app),
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: app.id },
      minReplicas: min,
      maxReplicas: max,
      metrics: [
        ...(cpu === undefined ? [] : [utilization("cpu", cpu)]),
        ...(memoryPercent === undefined ? [] : [utilization("memory", memoryPercent)]),
      ],
    },
  };
}
