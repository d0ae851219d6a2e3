import type { Rule } from "../rule.ts";
import type { ProjectSpecFields } from "./spec-fields.ts";
import type { ProjectType } from "./types.ts";

/** Which plans a type of project may have. */

/** True for the ids of free plans: `free` itself and all that end in `-free`. */
export function isFreePlan(plan: string): boolean {
  return plan === "free" || plan.endsWith("-free");
}

/** The same in CEL. */
export const FREE = "(self.plan == 'free' || self.plan.endsWith('-free'))";

const TYPED_PLAN = /^(job|db|analytics|cache|queue)-/;
/** Prefix of the plans of a type; undefined for http and worker, whose plans have none of them. */
export function planPrefix(type: ProjectType, profile?: string): string | undefined {
  switch (type) {
    case "http":
    case "worker":
      return undefined;
    case "job":
      return "job-";
    case "clickhouse":
      return "analytics-";
    case "postgresql":
    case "mariadb":
      return "db-";
    case "valkey":
      return profile === "cache" ? "cache-" : profile === "queue" ? "queue-" : "db-";
  }
}

export const plans: Rule<ProjectSpecFields>[] = [
  {
    cel: `self.type != 'http' || !self.plan.matches('${TYPED_PLAN.source}')`,
    check: (self) => self.type !== "http" || !TYPED_PLAN.test(self.plan),
    message: "{plan} is not a plan for http projects",
    fields: ["plan", "type"],
  },
  {
    cel: `self.type != 'worker' || !self.plan.matches('${TYPED_PLAN.source}')`,
    check: (self) => self.type !== "worker" || !TYPED_PLAN.test(self.plan),
    message: "{plan} is not a plan for worker projects",
    fields: ["plan", "type"],
  },
  {
    cel: "self.type != 'job' || self.plan.startsWith('job-')",
    check: (self) => self.type !== "job" || self.plan.startsWith("job-"),
    message: "{plan} of a job must begin with job-",
    fields: ["plan", "type"],
  },
  {
    cel: "!(self.type in ['postgresql', 'mariadb']) || self.plan.startsWith('db-')",
    check: (self) => !["postgresql", "mariadb"].includes(self.type) || self.plan.startsWith("db-"),
    message: "{plan} of a postgresql or mariadb project must begin with db-",
    fields: ["plan", "type"],
  },
  {
    cel: "self.type != 'mariadb' || self.plan != 'db-free'",
    check: (self) => self.type !== "mariadb" || self.plan !== "db-free",
    message: "{plan} db-free is not for mariadb projects",
    fields: ["plan", "type"],
  },
  {
    cel: "self.type != 'clickhouse' || self.plan.startsWith('analytics-')",
    check: (self) => self.type !== "clickhouse" || self.plan.startsWith("analytics-"),
    message: "{plan} of a clickhouse project must begin with analytics-",
    fields: ["plan", "type"],
  },
  {
    cel: "self.type != 'valkey' || !has(self.profile) || self.plan.startsWith(self.profile == 'key_value' ? 'db-' : self.profile + '-')",
    check: (self) =>
      self.type !== "valkey" ||
      self.profile === undefined ||
      self.plan.startsWith(planPrefix("valkey", self.profile) ?? ""),
    message: "{plan} must match {profile}: db- for key_value, cache- for cache, queue- for queue",
    fields: ["plan", "type", "profile"],
  },
  {
    cel: "(self.type == 'job') == (self.paymentMode == 'per_minute')",
    check: (self) => (self.type === "job") === (self.paymentMode === "per_minute"),
    message: "{paymentMode} per_minute is for jobs, and jobs accept no other",
    fields: ["paymentMode", "type"],
  },
];
