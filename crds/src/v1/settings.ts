import { z } from "zod";
import {
  cron,
  description,
  exposure,
  hostname,
  imageUrl,
  paymentMode,
  planId,
  projectName,
  subdomain,
  text,
} from "../fields.ts";
import { setOf } from "../rule.ts";
import { environment } from "./environment.ts";

/** The bodies of "Project settings", made from the fields of the custom resource. Rules that span fields are the resource's. */

export const patchNameBody = z.strictObject({ name: projectName });
export const patchDescriptionBody = z.strictObject({ description });
export const patchDomainBody = z.strictObject({ domain: subdomain });
export const patchCustomDomainsBody = z.strictObject({
  custom_domains: setOf(z.array(hostname("A domain of the user's own.")).max(20)).describe(
    "The complete list: a domain that is absent from it is removed. At most one may be new.",
  ),
});
export const patchExposureBody = z.strictObject({ exposure });
export const patchEnvsBody = z.strictObject({ envs: environment });
export const patchImageBody = z.strictObject({ image: imageUrl });
/** `normalizeCron` comes first: `/v1` forgives spaces. */
export const patchScheduleBody = z.strictObject({ cron });
export const patchPlanBody = z.strictObject({ plan: planId, payment_mode: paymentMode.optional() });
export const rollbackBody = z.strictObject({
  deployment_id: text(1, 64, "Id of one of the project's newest deployments.").regex(/^[A-Za-z0-9._-]*$/, {
    message: "must be letters, digits, dots, underscores and hyphens",
  }),
});
