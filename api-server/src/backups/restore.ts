import {
  type Backup,
  type CreateProjectRequest,
  type ProjectSpec,
  projectSpec,
  snakeCase,
} from "@slipway/crds";
import { z } from "zod";
import { offerErrors } from "../databases/plan.ts";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { specErrors } from "../projects/change.ts";
import type { Services } from "../services.ts";
import { isComplete } from "./view.ts";

/** Builds the creation request of a project that is restored from a backup. */

const { name, description, plan, paymentMode, instances, storage } = projectSpec.shape;

/** What a restore may set differently from the old project. */
export const restoreBody = z.strictObject({
  name,
  description,
  plan: plan.optional(),
  payment_mode: paymentMode.optional(),
  instances,
  storage_capacity: storage
    .unwrap()
    .shape.capacity.describe("GB of each instance's volume; at least what the old project had.")
    .optional(),
});
export type RestoreBody = z.output<typeof restoreBody>;

/**
 * The project that begins with a backup, as the body of a creation.
 * @throws Failure 409 for a backup that is not complete, 400 that names every broken rule
 */
export function restoreRequest(
  backup: Backup,
  body: RestoreBody,
  { catalog: { current: catalog } }: Pick<Services, "catalog">,
): CreateProjectRequest {
  const { engine, version, source } = backup.status ?? {};
  if (!isComplete(backup) || engine === undefined || version === undefined || source === undefined) {
    throw failures.backupNotComplete(backup.metadata.name);
  }
  const capacity = body.storage_capacity ?? source.capacity;
  const wanted = {
    type: engine,
    name: body.name,
    ...(body.description === undefined ? {} : { description: body.description }),
    plan: body.plan ?? source.plan,
    paymentMode: body.payment_mode ?? source.paymentMode,
    version,
    ...(engine === "valkey"
      ? { profile: source.profile }
      : { instances: body.instances ?? source.instances ?? 1 }),
    ...(capacity === undefined ? {} : { storage: { persistent: true, capacity } }),
    ...(source.networkAccess === undefined ? {} : { networkAccess: source.networkAccess }),
    database: { restoreFrom: { backup: backup.metadata.name } },
  } as ProjectSpec;
  const errors = [
    ...specErrors(wanted, wanted, FIELDS),
    ...sizeErrors(capacity, source.capacity),
    ...planErrors(wanted, catalog),
  ];
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  return { spec: wanted, envs: [] };
}

/** How the body calls what a spec has. */
const FIELDS = { "storage.capacity": "storage_capacity" } as const;

function sizeErrors(requested: number | undefined, before: number | undefined): FieldError[] {
  if (requested === undefined || before === undefined || requested >= before) {
    return [];
  }
  return [{ field: "storage_capacity", message: `must be at least the ${before} GB of the old project` }];
}

function planErrors(spec: ProjectSpec, catalog: Services["catalog"]["current"]): FieldError[] {
  const plan = catalog.databasePlans.find((one) => one.plan === spec.plan);
  if (!plan) {
    return [{ field: "plan", message: `unknown plan ${spec.plan}`, code: "PLAN_UNKNOWN" }];
  }
  return offerErrors(spec, plan, catalog).map((error) => ({ ...error, field: fieldOf(error.field) }));
}

/** The fields of a creation are below `config`. */
function fieldOf(field: string): string {
  return snakeCase(field.replace(/^config\./, "")).replace("storage.capacity", "storage_capacity");
}
