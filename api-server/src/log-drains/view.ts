import { LOG_DRAIN_ID, type LogDrain } from "@slipway/crds";
import { z } from "zod";

/** A log drain as `/v1` shows it: without any credential. */
export const drainSchema = z.object({
  id: z.string().regex(LOG_DRAIN_ID),
  name: z.string(),
  project_id: z.string().optional().describe("The only project whose lines are sent."),
  otlp_http: z.object({ endpoint: z.string() }).optional(),
  syslog: z.object({ host: z.string(), port: z.int() }).optional(),
  ca: z.string().optional(),
  has_credentials: z.boolean().describe("Whether it has headers or a client's certificate."),
  status: z
    .enum(["pending", "delivering", "failing", "misconfigured"])
    .describe("`pending` until something was sent."),
  message: z.string().optional().describe("Why it is `failing` or `misconfigured`."),
  lag_seconds: z
    .int()
    .describe("By how much the receiver is behind: 0 below a minute, whole minutes otherwise."),
  refused_lines: z.int().describe("Lines that the receiver refused for good."),
  skipped_lines: z.int().describe("Lines that were left out since the receiver was away for too long."),
  created_at: z.string(),
});

export function drainView({ metadata, spec, status }: LogDrain): z.output<typeof drainSchema> {
  return {
    id: metadata.name,
    name: spec.displayName,
    ...(spec.projectRef === undefined ? {} : { project_id: spec.projectRef.name }),
    ...(spec.otlpHttp === undefined ? {} : { otlp_http: { endpoint: spec.otlpHttp.endpoint } }),
    ...(spec.syslog === undefined ? {} : { syslog: { host: spec.syslog.host, port: spec.syslog.port } }),
    ...(spec.ca === undefined ? {} : { ca: spec.ca }),
    has_credentials: spec.secretRef !== undefined,
    ...stateOf(status),
    lag_seconds: status?.lagSeconds ?? 0,
    refused_lines: status?.refusedLines ?? 0,
    skipped_lines: status?.skippedLines ?? 0,
    created_at: metadata.creationTimestamp ?? "",
  };
}

function stateOf(status: LogDrain["status"]): Pick<z.output<typeof drainSchema>, "status" | "message"> {
  const find = (wanted: string) => status?.conditions?.find(({ type }) => type === wanted);
  const [ready, delivering] = [find("Ready"), find("Delivering")];
  if (ready?.status === "False") {
    return { status: "misconfigured", message: ready.message };
  }
  if (delivering === undefined) {
    return { status: "pending" };
  }
  return delivering.status === "True"
    ? { status: "delivering" }
    : { status: "failing", message: delivering.message };
}
