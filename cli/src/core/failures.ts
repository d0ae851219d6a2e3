import { SlipwayError } from "@slipway/sdk";
import { CliError } from "./command.ts";

/** What to do about failures of the API, by their code. */
const ADVICE: Readonly<Record<string, string>> = {
  CREDENTIAL_MISSING: "run `slipway login`, or set SLIPWAY_API_KEY",
  CREDENTIAL_INVALID: "the key was revoked or is of another server: run `slipway login` with a new one",
  PERMISSION_DENIED: "ask an owner of the organization for a key with this grant",
  PROJECT_NOT_FOUND: "`slipway projects` lists those that the key can read",
  ORGANIZATION_BLOCKED: "a payment is pending: `slipway invoices` lists what is open",
  BUDGET_EXHAUSTED: "an owner can raise the organization's budget",
  RATE_LIMIT_EXCEEDED: "wait, then try again",
  SERVER_BUSY: "wait, then try again",
  GIT_SOURCE_REQUIRED: "the project has no Git repository: deploy an image with --image",
  PROJECT_NOT_DEPLOYED: "deploy it first: `slipway deploy`",
  ANALYTICS_NOT_CONFIGURED: "this installation keeps no logs and metrics: ask who runs it",
};

/** A failure as its message for people, and the exit code. Pure. */
export function describeFailure(error: unknown): { message: string; exitCode: number } {
  if (error instanceof CliError) {
    return { message: error.message, exitCode: error.exitCode };
  }
  if (error instanceof SlipwayError) {
    const advice = ADVICE[error.code] ?? adviceOf(error.status);
    const required = error.details.required;
    const grants = Array.isArray(required) ? `\n  required: ${required.join(", ")}` : "";
    return {
      message: `${error.message} (${error.code})${grants}${advice === undefined ? "" : `\n  ${advice}`}`,
      exitCode: 1,
    };
  }
  if (error instanceof TypeError && error.message === "fetch failed") {
    const { cause } = error as { cause?: Error & { code?: string } };
    const reason = cause?.code ?? cause?.message ?? "no connection";
    return {
      message: `the server does not answer (${reason})\n  check the address with \`slipway doctor\``,
      exitCode: 1,
    };
  }
  return { message: error instanceof Error ? error.message : String(error), exitCode: 1 };
}

const adviceOf = (status: number): string | undefined =>
  status === 503 ? "the platform cannot do this at this time: try again later" : undefined;
