/** What stays true of a Project whose object is created again. Pure. */

import type { ProjectSpec } from "./spec.ts";
import type { ProjectStatus } from "./status.ts";

/**
 * The spec of a project that is created again. What a budget had paused is not paused, so that it has a quota of its own again; a budget
 * that is still spent pauses it again.
 */
export function specOfRecreated(spec: ProjectSpec): ProjectSpec {
  if (spec.pausedBy === undefined) {
    return spec;
  }
  const { paused: _, pausedBy: __, ...rest } = spec;
  return rest;
}

/**
 * The status of a project that is created again: its history, and nothing that was observed of its pods. A new object begins with
 * its first generation: those of before mean nothing for it.
 */
export function statusOfRecreated(status: Readonly<ProjectStatus>): ProjectStatus {
  const {
    conditions: _1,
    phase: _2,
    currentInstances: _3,
    desiredInstances: _4,
    readyInstances: _5,
    lastTermination: _6,
    sleep: _7,
    // What is billed is a history of one object.
    billing: _8,
    ...history
  } = status;
  return withGenerations(history, 0) as ProjectStatus;
}

/** The same value, with this number in place of each generation, however deep. */
export function withGenerations(value: unknown, generation: number): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => withGenerations(item, generation));
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  const fields = Object.entries(value).map(([name, field]) => [
    name,
    /^(observedG|g)eneration$/.test(name) && typeof field === "number"
      ? generation
      : withGenerations(field, generation),
  ]);
  return Object.fromEntries(fields);
}
