import { type DestinationStream, type Logger, pino } from "pino";

/** Wherever one of these turns up in a log line, its value does not. */
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

/** Structured logs: a constant message, fields for the rest, secrets redacted up to three levels deep. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const dotted = SECRETS.map((name) => (name.startsWith("[") ? name : `.${name}`));
  const paths = [...SECRETS, ...dotted.map((name) => `*${name}`), ...dotted.map((name) => `*.*${name}`)];
  const options = {
    level,
    base: { component: "api-server" },
    redact: { paths, censor: "[redacted]" },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (level: string) => ({ level }) },
  };
  return destination ? pino(options, destination) : pino(options);
}
