import { capabilities } from "@slipway/crds";
import { z } from "zod";

/** The catalogs' items as the API shows them. */

const prices = z
  .object({ hourly: z.number(), monthly: z.number(), yearly: z.number() })
  .describe("BRL cents, which may be fractions.");
const features = z.array(z.string());
const permissions = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));

export const httpPlanSchema = z.object({ plan: z.string(), prices, features, permissions, capabilities });

export const jobPlanSchema = z.object({
  plan: z.string(),
  price_per_minute: z.number(),
  currency: z.literal("brl"),
  payment_mode: z.literal("per_minute"),
  features,
  permissions,
});

export const storagePlanSchema = z.object({ storage: z.string(), prices, persistent: z.boolean() });

const bounds = { min: z.int(), default: z.int(), max: z.int(), editable: z.boolean() };
const offer = z.object({
  instances: z.object(bounds),
  storage: z.object({ ...bounds, included: z.int(), step: z.int() }),
  versions: z.array(z.string()),
  default_version: z.string(),
  billing: z.object({ instances: z.string(), storage: z.string() }),
});

export const databasePlanSchema = z.object({
  plan: z.string(),
  prices,
  features,
  engines: z.record(z.string(), offer),
});

const field = z.object({
  name: z.string(),
  type: z.string(),
  required: z.boolean(),
  description: z.string(),
});

export const engineSchema = z.object({
  id: z.string(),
  name: z.string(),
  versions: z.array(z.string()),
  plans: z.array(z.object({ id: z.string(), payment_modes: z.array(z.string()), capability: offer })),
  configuration_fields: z.array(field.loose()),
  connection_fields: z.array(field.loose()),
});
