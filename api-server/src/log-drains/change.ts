import type { KubeClient } from "@slipway/controller-runtime";
import type { LogDrain, patchLogDrainBody } from "@slipway/crds";
import type { z } from "zod";
import { failures } from "../errors/catalog.ts";
import { Failure } from "../errors/failure.ts";
import { patchDrain } from "./cluster.ts";
import {
  type CredentialsData,
  changedData,
  createCredentials,
  credentialsOf,
  deleteCredentials,
  membersMissing,
  newCredentialsName,
} from "./credentials.ts";

type Body = z.output<typeof patchLogDrainBody>;

/** Writes of a drain: the platform writes its status meanwhile, each of which is a conflict. */
const ATTEMPTS = 5;

/**
 * Changes a drain. Its receiver and the Secret that it names change in one write, so that credentials are sent to no receiver that they were not
 * given for.
 * @param find reads the drain and checks that the caller may change it
 * @throws Failure 400, 404, 409, 503
 */
export async function changeDrain(
  kube: KubeClient,
  find: () => Promise<LogDrain>,
  body: Body,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const drain = await find();
    const plan = await planOf(kube, drain, body);
    if (plan === undefined) {
      return;
    }
    if (plan.secret !== undefined) {
      await createCredentials(kube, drain, plan.secret.name, plan.secret.data);
    }
    try {
      await patchDrain(kube, drain, plan.spec);
      if (plan.replaced !== undefined) {
        await deleteCredentials(kube, drain, plan.replaced);
      }
      return;
    } catch (error) {
      const code = error instanceof Failure ? error.code : undefined;
      const isRefused = code === "LOG_DRAIN_CONFLICT" || code === "LOG_DRAIN_NOT_FOUND";
      // A write without an answer may have been done: the drain then names it.
      if (plan.secret !== undefined && isRefused) {
        await deleteCredentials(kube, drain, plan.secret.name);
      }
      if (code !== "LOG_DRAIN_CONFLICT" || attempt === ATTEMPTS) {
        throw error;
      }
    }
  }
}

interface Plan {
  spec: Record<string, unknown>;
  /** To be created before. */
  secret: { name: string; data: CredentialsData } | undefined;
  /** Name of the Secret that is of no use after. */
  replaced: string | undefined;
}

/** What to write; undefined when nothing changes. @throws Failure 400, 409, 503 */
async function planOf(kube: KubeClient, drain: LogDrain, body: Body): Promise<Plan | undefined> {
  const { spec, metadata } = drain;
  const { name: displayName, otlp_http: otlpHttp, syslog, ca } = body;
  refuseOtherKind(body, spec.otlpHttp !== undefined);
  const changesCredentials = body.headers !== undefined || body.client_certificate !== undefined;
  const changed = Object.entries({ displayName, otlpHttp, syslog, ca }).filter(
    ([field, value]) =>
      value !== undefined &&
      JSON.stringify(value) !== JSON.stringify(spec[field as keyof typeof spec] ?? null),
  );
  const live = changesCredentials || isMoved(spec, body) ? await credentialsOf(kube, drain) : {};
  const named = spec.secretRef?.name;
  if (live === undefined && (changesCredentials || named !== undefined)) {
    throw failures.logDrainExternal(named ?? "");
  }
  const data = changedData(live ?? {}, body);
  if (isMoved(spec, body)) {
    const fields = membersMissing(live ?? {}, body);
    if (fields.length > 0) {
      const message = "must be given with another receiver: those of now are not sent to it";
      throw failures.validation(fields.map((field) => ({ field, code: "LOG_DRAIN_CREDENTIALS", message })));
    }
  }
  if (!changesCredentials) {
    return changed.length === 0
      ? undefined
      : { spec: Object.fromEntries(changed), secret: undefined, replaced: undefined };
  }
  const secret =
    Object.keys(data).length === 0 ? undefined : { name: newCredentialsName(metadata.name), data };
  const secretRef = secret === undefined ? null : { name: secret.name };
  return { spec: { ...Object.fromEntries(changed), secretRef }, secret, replaced: named };
}

/** Whether lines go to another server than before. */
function isMoved({ otlpHttp, syslog }: LogDrain["spec"], body: Body): boolean {
  if (otlpHttp !== undefined && body.otlp_http !== undefined) {
    return originOf(otlpHttp.endpoint) !== originOf(body.otlp_http.endpoint);
  }
  return (
    syslog !== undefined &&
    body.syslog !== undefined &&
    (syslog.host.toLowerCase() !== body.syslog.host.toLowerCase() || syslog.port !== body.syslog.port)
  );
}

const originOf = (endpoint: string): string => URL.parse(endpoint)?.origin ?? endpoint;

/** A drain stays one of OTLP or of syslog. @throws Failure 400 */
function refuseOtherKind(body: Body, isOtlp: boolean): void {
  const wrong = (isOtlp ? ["syslog"] : ["otlp_http", "headers"]).filter(
    (field) => body[field as keyof typeof body] !== undefined,
  );
  if (wrong.length > 0) {
    const message = `the drain is one of ${isOtlp ? "OTLP" : "syslog"}`;
    throw failures.validation(wrong.map((field) => ({ field, code: "LOG_DRAIN_KIND", message })));
  }
}
