export { type Call, createSlipway, type Slipway, type SlipwayOptions } from "./client.ts";
export { type FieldError, SlipwayError, toSlipwayError, UNKNOWN_CODE } from "./error.ts";
export { type BuildLine, type FollowOptions, followBuild, followLogs, type LogLine } from "./follow.ts";
export type { operations, paths } from "./generated/openapi.ts";
export {
  eachBackup,
  eachBuild,
  eachDeployment,
  eachInvoice,
  eachItem,
  eachJobRun,
  eachProject,
  eachRun,
  type Page,
} from "./pages.ts";
export type { RetryOptions } from "./retry.ts";
