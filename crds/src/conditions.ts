import { z } from "zod";
import { matching, observedGeneration, text, timestamp } from "./fields.ts";
import { mapOf } from "./rule.ts";

/** `metav1.Condition`. */
export const condition = z
  .strictObject({
    type: matching(
      /^[A-Za-z][A-Za-z0-9]*$/,
      "must be a condition type in CamelCase",
      64,
      "What is reported.",
    ),
    status: z.enum(["True", "False", "Unknown"]).describe("Whether it holds."),
    observedGeneration: observedGeneration("Generation of the resource that this was reported for."),
    lastTransitionTime: timestamp("When status changed last."),
    reason: matching(/^[A-Za-z][A-Za-z0-9_]*$/, "must be a reason in CamelCase", 128, "Why, for machines."),
    message: text(0, 2048, "Why, for people. It never holds a secret."),
  })
  .describe("One observation about the resource.");
export type Condition = z.output<typeof condition>;

/** A `conditions` field: one entry per type. */
export const conditions = mapOf(z.array(condition).max(24), "type").describe("Observations, one per type.");

/** Reasons that a condition of any kind may have, of what befalls every reconcile. */
export const commonReasons = {
  /** The organization's namespace is being deleted. */
  NamespaceTerminating: "NamespaceTerminating",
  /** The apiserver refuses what is written; the message says why. */
  ApiRefused: "ApiRefused",
  TimedOut: "TimedOut",
  /** A defect: the operator's log has the details. */
  InternalError: "InternalError",
  /** The node's clock is too far from the apiserver's. */
  ClockSkew: "ClockSkew",
  /** Somebody changed what is written at the same moment; it is tried again. */
  Conflict: "Conflict",
  /** A child's name is taken by an object that is not ours. */
  ChildConflict: "ChildConflict",
  /** A former child is being deleted. */
  ChildTerminating: "ChildTerminating",
} as const;
export type CommonReason = keyof typeof commonReasons;
