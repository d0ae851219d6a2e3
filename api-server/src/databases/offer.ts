import { type Catalog, type DatabasePlan, isDatabaseType, type ProjectSpec } from "@slipway/crds";
import type { FieldError } from "../errors/failure.ts";

interface Range {
  min: number;
  max: number;
}

/** What a plan of databases does not offer of the requested: 400. Fields are those of a creation. Pure. */
export function offerErrors(spec: ProjectSpec, plan: DatabasePlan, { engines }: Catalog): FieldError[] {
  const { type, version = "", instances, storage, paymentMode } = spec;
  if (!isDatabaseType(type)) {
    return [];
  }
  const offer = plan.engines[type];
  if (!offer) {
    return [{ field: "plan", message: `plan ${plan.plan} has no ${type}` }];
  }
  const errors: FieldError[] = [];
  const modes = engines.find(({ id }) => id === type)?.paymentModes;
  if (modes && !(modes as readonly string[]).includes(paymentMode)) {
    const message = `${type} is paid ${modes.join(", ")}`;
    errors.push({ field: "payment_mode", message, code: "PAYMENT_MODE_INVALID" });
  }
  if (!offer.versions.includes(version)) {
    const message = `plan ${plan.plan} has ${type} ${offer.versions.join(", ")}`;
    errors.push({ field: "config.version", message });
  }
  if (instances !== undefined && isOutside(instances, offer.instances)) {
    const message = `plan ${plan.plan} has ${rangeText(offer.instances)} instances`;
    errors.push({ field: "config.instances", message });
  }
  if (storage && isOutside(storage.capacity, offer.storage)) {
    const message = `plan ${plan.plan} has ${rangeText(offer.storage)} GB of storage`;
    errors.push({ field: "config.storage.capacity", message });
  }
  return errors;
}

const isOutside = (value: number, { min, max }: Range): boolean => value < min || value > max;
const rangeText = ({ min, max }: Range): string => (min === max ? `exactly ${min}` : `${min} to ${max}`);
