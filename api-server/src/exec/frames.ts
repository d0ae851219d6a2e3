import { execChannels as channels, exitCodeOf } from "@slipway/controller-runtime";

/** What the messages of a session are: pure. Each begins with the byte of its channel, as Kubernetes has them. */

/** Bytes of the largest message of a client: more is closed with 1009. */
export const MAX_CLIENT_MESSAGE = 128 * 1024;
/** Bytes of the largest message of the apiserver; it sends 32 KiB at a time. */
export const MAX_SERVER_MESSAGE = 256 * 1024;
/** Columns and rows of the largest terminal. */
const MAX_TERMINAL = 4_096;
/** Bytes of a resize message, and of a status that is read for its exit code. */
const MAX_RESIZE = 128;
const MAX_STATUS = 64 * 1024;

/** Which streams the command of a session has. */
export interface Streams {
  stdin: boolean;
  tty: boolean;
}

/**
 * Whether a client may send this: input, its end, or the size of the terminal.
 * @param message with its channel's byte
 */
export function isClientMessage(message: Buffer, { stdin, tty }: Streams): boolean {
  switch (message[0]) {
    case channels.stdin:
      return stdin;
    case channels.close:
      return stdin && message.length === 2 && message[1] === channels.stdin;
    case channels.resize:
      return tty && isTerminalSize(message.subarray(1));
    default:
      return false;
  }
}

/** `{"Width":80,"Height":24}` */
function isTerminalSize(json: Buffer): boolean {
  if (json.length > MAX_RESIZE) {
    return false;
  }
  try {
    const size: unknown = JSON.parse(json.toString("utf8"));
    return isRecord(size) && isLength(size.Width) && isLength(size.Height);
  } catch {
    return false;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

const isLength = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= MAX_TERMINAL;

/**
 * The exit code in the status of a command's end.
 * @param status the JSON of a `metav1.Status`
 * @returns undefined when it says none: the command could not be started
 */
export function exitCodeIn(status: Buffer): number | undefined {
  if (status.length > MAX_STATUS) {
    return undefined;
  }
  try {
    const code = exitCodeOf(status);
    return Number.isInteger(code) ? code : undefined;
  } catch {
    return undefined;
  }
}

/** Why a session ended, and the close code that its client gets. Stable: clients branch on them. */
export const END_CODES = {
  /** The command has ended; its status came before. */
  EXEC_EXITED: 1000,
  /** The client closed, or its connection broke: it gets no more. */
  EXEC_CLIENT_CLOSED: 1000,
  /** The API server ends; connect again. */
  EXEC_SERVER_ENDING: 1001,
  /** The client sent what no client may. */
  EXEC_PROTOCOL_ERROR: 1008,
  EXEC_MESSAGE_TOO_LARGE: 1009,
  /** The instance, its node or the apiserver disconnected before the command ended. */
  EXEC_INSTANCE_LOST: 1011,
  /** Whether its caller may go on could not be checked for too long; connect again. */
  EXEC_ACCESS_UNKNOWN: 1013,
  /** Key revoked or expired, member removed, permission withdrawn. */
  EXEC_ACCESS_REVOKED: 4403,
  EXEC_ORGANIZATION_BLOCKED: 4402,
  EXEC_PROJECT_DELETED: 4404,
  /** Neither side sent anything for too long. */
  EXEC_IDLE: 4408,
  EXEC_TIME_LIMIT: 4409,
  /** The client does not read, and answers no ping. */
  EXEC_CLIENT_STALLED: 4410,
} as const;

export type EndCode = keyof typeof END_CODES;
