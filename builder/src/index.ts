export {
  type BaseImage,
  type BaseImages,
  baseImages,
  defaultRuntimeCatalog,
  type PublicRuntime,
  parseBaseImages,
  parseRuntimeCatalog,
  publicRuntimes,
  type Runtime,
  type RuntimeCatalog,
  type RuntimeId,
  runtimeIds,
} from "./catalog.ts";
export { forProvider } from "./failures/classify.ts";
export {
  type Failure,
  type FailureCode,
  type FailureDetail,
  failure,
  failures,
  isPassing,
} from "./failures/codes.ts";
export { type LogLine, MAX_LOG_BYTES, MAX_MESSAGE_BYTES, parseLogLine } from "./log/line.ts";
export { Redactor, type Secrets } from "./log/redact.ts";
export { podPaths, secretPaths, workPaths } from "./paths.ts";
export { exitCodes, parseStepResult, type StepResult, TERMINATION_LOG } from "./result.ts";
export { parseTask, type Step, steps, TASK_VARIABLE, type Task, task } from "./task.ts";
