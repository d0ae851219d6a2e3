import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";

/** The part of pino's logger that libraries use. Messages are constants; fields carry the rest. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Logger;
}

/** Logs nothing. */
export const silentLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLogger,
};

/** Fields whose value is never logged. Nothing logs them on purpose; an error of a library might carry them. */
const SECRETS = [
  "token",
  "password",
  "secret",
  "authorization",
  '["x-api-key"]',
  "envs",
  "data",
  "stringData",
  "secret_access_key",
  "access_key_id",
  "connectionString",
];

/**
 * The logger of a process: JSON lines with a constant message and fields for the rest, secrets redacted up to three levels deep.
 * @param component which process it is: a field of every line
 * @param destination where lines are written; stdout unless given
 */
export function createLogger(component: string, level: string, destination?: DestinationStream): PinoLogger {
  const dotted = SECRETS.map((name) => (name.startsWith("[") ? name : `.${name}`));
  const paths = [...SECRETS, ...dotted.map((name) => `*${name}`), ...dotted.map((name) => `*.*${name}`)];
  const options = {
    level,
    base: { component },
    redact: { paths: [...paths, "err.config", "err.request"], censor: "[redacted]" },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return destination ? pino(options, destination) : pino(options);
}
