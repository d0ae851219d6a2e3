import type { Autoscaling, Project } from "./shapes.ts";

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
 * The body that changes what the form changes; undefined when that is nothing. The autoscaling is sent as a whole, with what others have
 * changed of it since the form was made, and removed where it is no longer wanted.
 * @param made the form as it was made
 * @param current the form of the project as it is now
 */
export function scalingBody(made: ScalingForm, now: ScalingForm, current: ScalingForm): object | undefined {
  const changed = Object.entries(now).filter(([field, value]) => made[field as keyof ScalingForm] !== value);
  const wanted: ScalingForm = { ...current, ...Object.fromEntries(changed) };
  const [before, after] = [autoscalingOf(current), autoscalingOf(wanted)];
  // The API holds instances to the most of one that is off, too.
  const isExceeded = after === null && current.most !== "" && Number(wanted.least) > Number(current.most);
  const body = {
    ...(Number(wanted.least) === Number(current.least) ? {} : { instances: Number(wanted.least) }),
    ...(isExceeded || JSON.stringify(after) !== JSON.stringify(before) ? { autoscaling: after } : {}),
  };
  return Object.keys(body).length === 0 ? undefined : body;
}

/** How a form is saved. */
export interface ScalingRequests {
  load: () => Promise<Project>;
  send: (body: object) => Promise<void>;
}

/**
 * Sends what a form changes of the project as it is now.
 * @returns what to say, and the project after the change, as far as it can be read
 */
export async function saveScaling(
  made: ScalingForm,
  now: ScalingForm,
  { load, send }: ScalingRequests,
): Promise<{ said: string; isSaved: boolean; project?: Project }> {
  const current = scalingForm(await load());
  if (made.isScaled && now.isScaled && !current.isScaled) {
    return { said: "The autoscaling was removed meanwhile: nothing is saved.", isSaved: false };
  }
  const body = scalingBody(made, now, current);
  if (body === undefined) {
    return { said: "Nothing is different.", isSaved: false };
  }
  await send(body);
  const project = await load().catch(() => undefined);
  return { said: "Saved.", isSaved: true, ...(project === undefined ? {} : { project }) };
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
