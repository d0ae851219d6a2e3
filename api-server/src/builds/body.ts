import { createProjectBodies, normalizeContextPath, type ProjectSpec, toCamel } from "@slipway/crds";
import type { z } from "zod";
import { atLeastOneField } from "../http/validate.ts";

/** Source and build settings as they are sent: the bodies of a creation, by their own names. */

const { source, build } = (createProjectBodies.http.shape.config as z.ZodObject).shape as Record<
  string,
  z.ZodOptional
>;

export const sourceBody = source?.unwrap() as z.ZodType<Record<string, unknown>>;
export const buildBody = build?.unwrap() as z.ZodObject;

/** A body with its path in the repository as it is meant: `/v1` forgives spaces, a leading `./` and a trailing `/`. Refuses nothing. */
export function tidyPath(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null) {
    return sent;
  }
  const { context_path } = sent as { context_path?: unknown };
  if (typeof context_path !== "string") {
    return sent;
  }
  return { ...sent, context_path: normalizeContextPath(context_path) };
}

/** The same of a body that has the settings as a part. */
export function tidyPart(sent: unknown): unknown {
  if (typeof sent !== "object" || sent === null || !("build" in sent)) {
    return sent;
  }
  return { ...sent, build: tidyPath(sent.build) };
}

/** Some of the settings of a build; null removes one. */
export const buildPatchBody = atLeastOneField(buildBody);

export const toSource = (sent: unknown): NonNullable<ProjectSpec["source"]> =>
  toCamel(sent) as NonNullable<ProjectSpec["source"]>;

/** Settings with what was sent of them; null takes one away. Pure. */
export function withSettings<T extends object>(current: T, sent: Record<string, unknown>): T {
  const merged = { ...current, ...(toCamel(sent) as object) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null)) as T;
}
