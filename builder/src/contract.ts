/** The contract between build pods and the operator: tasks in, results and log lines out. */

export { type BaseImages, baseImages } from "./catalog.ts";
export { type Failure, type FailureCode, failure, failures, isPassing } from "./failures/codes.ts";
export { MAX_LOG_BYTES, MAX_MESSAGE_BYTES, parseLogLine } from "./log/line.ts";
export { stripControlCharacters } from "./log/redact.ts";
export { podPaths } from "./paths.ts";
export { exitCodes, parseStepResult, type StepResult } from "./result.ts";
export {
  type BackendSetting as EngineSetting,
  backendSettings as engineSettings,
  type Container,
  containerSteps,
  containers,
  type Step,
  steps,
  TASK_VARIABLE,
  type Task,
} from "./task.ts";
