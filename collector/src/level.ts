import { LEVELS, type Level } from "@slipway/analytics";

/** The level that a line states, in the ways that loggers and engines do. Pure. */

/** Names of levels, in lower case. */
const NAMES: ReadonlyMap<string, Level> = new Map(
  Object.entries({
    trace: ["trace", "finest", "verbose", "silly", "test"],
    debug: ["debug", "debug1", "debug2", "debug3", "debug4", "debug5", "fine", "dbg"],
    info: ["info", "information", "informational", "notice", "note", "log", "default", "inf"],
    warn: ["warn", "warning", "wrn"],
    error: ["error", "err", "severe"],
    fatal: ["fatal", "critical", "crit", "panic", "alert", "emerg", "emergency", "dpanic"],
  } satisfies Record<Level, string[]>).flatMap(([level, names]) =>
    names.map((name): [string, Level] => [name, level as Level]),
  ),
);

/** Characters of a line in which its level is searched for. */
const HEAD = 512;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' colours
const COLOUR = /\u001b\[[0-9;]*m/g;
const NAME = [...NAMES.keys()].sort((a, b) => b.length - a.length).join("|");
const LOGFMT = new RegExp(`(?:^|\\s)(?:level|lvl|severity|loglevel)="?(${NAME})"?(?=\\s|$)`, "i");
/** After dates, times, numbers and names in brackets: `[error]`, `<Error>`, `ERROR:`, `LOG: `. In capitals alone without marks. */
const PREFIX = new RegExp(
  `^(?:[\\d\\s:.,/TZ+-]|UTC|\\[[^\\]]{0,80}\\]\\s|\\{[^}]{0,80}\\}\\s|\\([\\w.]{0,40}\\)\\s)*` +
    `(?:\\[(${NAME})\\s*\\]|<(${NAME})>|(${NAME}):|((?:${NAME.toUpperCase()})(?=[\\s|-]|$)))`,
  "i",
);
/** `E1122 04:42:09.123` of Kubernetes' own programs. */
const KLOG = /^([IWEF])\d{4} \d{2}:\d{2}:\d{2}/;
const KLOG_LEVELS: Record<string, Level> = { I: "info", W: "warn", E: "error", F: "fatal" };
/** `1:M 22 Nov 2026 04:42:09.123 * text` of Valkey. */
const VALKEY = /^\d+:[XCSM] \d{1,2} [A-Z][a-z]{2} \d{4} [\d:.]+ ([.\-*#]) /;
const VALKEY_LEVELS: Record<string, Level> = { ".": "debug", "-": "debug", "*": "info", "#": "warn" };

/** Members of a JSON line that loggers keep the level in. */
const MEMBERS = ["level", "severity", "lvl", "log.level", "levelname", "loglevel", "log_level"] as const;

/** @returns null for a line that states none */
export function levelOf(line: string): Level | null {
  const text = line.trimStart();
  if (text.startsWith("{")) {
    return ofJson(text);
  }
  const head = text.slice(0, HEAD).replace(COLOUR, "");
  const klog = KLOG.exec(head)?.[1];
  if (klog !== undefined) {
    return KLOG_LEVELS[klog] ?? null;
  }
  const valkey = VALKEY.exec(head)?.[1];
  if (valkey !== undefined) {
    return VALKEY_LEVELS[valkey] ?? null;
  }
  const [, bracketed, angled, before, alone] = PREFIX.exec(head) ?? [];
  // Without a mark a word may be the beginning of a sentence.
  const capitals = alone !== undefined && alone === alone.toUpperCase() ? alone : undefined;
  return named(bracketed ?? angled ?? before ?? capitals ?? LOGFMT.exec(head)?.[1]);
}

function named(name: string | undefined): Level | null {
  return NAMES.get(name?.toLowerCase() ?? "") ?? null;
}

function ofJson(text: string): Level | null {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    return null;
  }
  for (const member of MEMBERS) {
    const value = (fields as Record<string, unknown>)[member];
    // Nothing else is asked what it is as a text: an object may have a `toString` that is none.
    const level =
      typeof value === "number" ? ofNumber(value) : typeof value === "string" ? named(value) : null;
    if (level !== null) {
      return level;
    }
  }
  return null;
}

/** The numbers of pino and bunyan: from 10 in tens. */
function ofNumber(value: number): Level | null {
  return LEVELS[Math.floor(value / 10) - 1] ?? null;
}
