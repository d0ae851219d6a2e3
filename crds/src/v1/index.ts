export { putAlertsBody } from "./alerts.ts";
export { createProjectBodies, type ImageAuthentication, imageAuthentication } from "./bodies.ts";
export { DEFAULT_NOTICES, putBudgetBody } from "./budget.ts";
export {
  type CreateProjectRequest,
  type CreateProjectResult,
  createProjectBody,
  type FieldIssue,
  parseCreateProject,
} from "./create-project.ts";
export {
  CONFIRMATION_CODE,
  confirmEmailRecipientBody,
  createEmailRecipientBody,
  EMAIL,
  EMAIL_MAX_LENGTH,
  patchEmailRecipientBody,
} from "./email-recipients.ts";
export * from "./log-drains.ts";
export * from "./settings.ts";
export {
  camelCase,
  type Snake,
  type SnakeCase,
  snakeCase,
  snakeObject,
  snakeSchema,
  toCamel,
  toOpenApi,
  toSnake,
} from "./snake.ts";
export * from "./variable-groups.ts";
export {
  createWebhookBody,
  type EventType,
  eventTypes,
  patchWebhookBody,
  WEBHOOK_PROJECTS_MAX,
  WEBHOOK_URL_MAX_LENGTH,
} from "./webhooks.ts";
