import type { Autoscaling } from "./shapes.ts";

/** How many instances a project has: what a form says of it, and what is sent. Pure. */

/** What the form has. Empty: the target is not set. */
export interface ScalingForm {
  least: string;
  isScaled: boolean;
  most: string;
  cpu: string;
  memory: string;
  requests: string;
}

/** The form of a project as it is. */
export function scalingForm({
  instances,
  autoscaling,
}: {
  instances: number;
  autoscaling?: Autoscaling;
}): ScalingForm {
  const shown = (value: number | undefined) => (value === undefined ? "" : String(value));
  return {
    least: String(instances),
    isScaled: autoscaling?.enabled ?? false,
    most: shown(autoscaling?.max_instances),
    cpu: shown(autoscaling?.cpu_target_percentage),
    memory: shown(autoscaling?.memory_target_percentage),
    requests: shown(autoscaling?.requests_per_second_target),
  };
}

/**
 * The body that changes what differs from the form as it was made; undefined when nothing does. The autoscaling is sent as a whole, and
 * removed where it is no longer wanted.
 */
export function scalingBody(made: ScalingForm, now: ScalingForm): object | undefined {
  const [before, after] = [autoscalingOf(made), autoscalingOf(now)];
  const body = {
    ...(Number(now.least) === Number(made.least) ? {} : { instances: Number(now.least) }),
    ...(JSON.stringify(after) === JSON.stringify(before) ? {} : { autoscaling: after }),
  };
  return Object.keys(body).length === 0 ? undefined : body;
}

function autoscalingOf({ isScaled, most, cpu, memory, requests }: ScalingForm): Autoscaling | null {
  return isScaled
    ? {
        enabled: true,
        max_instances: Number(most),
        ...(cpu === "" ? {} : { cpu_target_percentage: Number(cpu) }),
        ...(memory === "" ? {} : { memory_target_percentage: Number(memory) }),
        ...(requests === "" ? {} : { requests_per_second_target: Number(requests) }),
      }
    : null;
}
