/** The body of a project's alerts. */

import { z } from "zod";
import { ALERTS_MAX, alertRuleFields } from "../project/alerts.ts";
import { snakeObject } from "./snake.ts";

const { name, ...others } = alertRuleFields.shape;

export const putAlertsBody = z.strictObject({
  alerts: z
    .array(
      snakeObject({
        name: name
          .optional()
          .describe("Name of the rule, once in the project; that of its metric unless given."),
        ...others,
      }),
    )
    .max(ALERTS_MAX)
    .describe("All rules of the project: one that is absent is removed."),
});
