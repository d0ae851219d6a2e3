import { parseQuantity } from "@slipway/controller-runtime";
import type { DesiredObject } from "../../desired.ts";
import { childMetadata } from "../../workload/app.ts";
import type { HttpApp } from "../app.ts";

/** Percent of the plan's CPU at which instances are added when the project names no target of its own. */
const DEFAULT_CPU_PERCENT = 80;

/** Adds and removes instances with the load; none for a fixed or a paused project. */
export function horizontalPodAutoscaler(app: HttpApp): DesiredObject | undefined {
  if (!app.autoscaling || app.replicas === 0) {
    return undefined;
  }
  const { min, max, cpuPercent, memoryPercent, least = min } = app.autoscaling;
  const { limits } = app.resources;
  const cpu = cpuPercent ?? (memoryPercent === undefined ? DEFAULT_CPU_PERCENT : undefined);
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: childMetadata(app),
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: app.id },
      // Kubernetes takes the most of what each figure needs: CPU, memory, and this least for requests.
      minReplicas: least,
      maxReplicas: max,
      metrics: [
        ...(cpu === undefined ? [] : [average("cpu", `${share(limits.cpu, cpu) / 1_000_000n}m`)]),
        ...(memoryPercent === undefined
          ? []
          : [average("memory", String(share(limits.memory, memoryPercent) / BILLION))]),
      ],
    },
  };
}

/** A percentage is meant of what the plan sells. Kubernetes' `Utilization` would count it from the smaller request. */
function average(name: string, averageValue: string) {
  return { type: "Resource", resource: { name, target: { type: "AverageValue", averageValue } } };
}

/** A share of a quantity, in billionths. */
function share(quantity: string, percent: number): bigint {
  return ((parseQuantity(quantity) ?? 0n) * BigInt(percent)) / 100n;
}

const BILLION = 1_000_000_000n;
