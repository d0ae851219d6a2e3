import { z } from "zod";

/** Where spans go, and how many. */
export interface TracingSettings {
  /** Address of a receiver of OTLP over HTTP, with its path. */
  url: string;
  /** Which part of the traces that begin here is kept: 0 to 1. */
  ratio: number;
}

/** Environment variables of tracing, for the schema of a process's environment. */
export const tracingVariables = {
  SLIPWAY_OTLP_TRACES_URL: z
    .url({ protocol: /^https?$/ })
    .refine((url) => !URL.canParse(url) || new URL(url).username === "", {
      message: "must not have credentials",
    })
    .optional(),
  SLIPWAY_OTLP_TRACES_RATIO: z.coerce.number().min(0).max(1).default(1),
};

/** The settings that they are; undefined when nothing is traced. */
export function tracingSettings(variables: {
  SLIPWAY_OTLP_TRACES_URL?: string | undefined;
  SLIPWAY_OTLP_TRACES_RATIO: number;
}): TracingSettings | undefined {
  const { SLIPWAY_OTLP_TRACES_URL: url, SLIPWAY_OTLP_TRACES_RATIO: ratio } = variables;
  return url === undefined ? undefined : { url, ratio };
}

/** Who reports spans, and where it logs what the exporter meets. */
export interface TracingOptions {
  /** `service.name` of every span. */
  service: string;
  /** `service.instance.id`: the pod. */
  instance: string;
  log: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
}
