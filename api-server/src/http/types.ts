import type { Readable } from "node:stream";

/** What a handler answers. `json` is serialised already, `body` is not; `content` and `stream` say their type in `headers`. */
export type Answer =
  | { status: number; body: Record<string, unknown>; headers?: Record<string, string> }
  | { status: number; json: string; headers?: Record<string, string> }
  | { status: number; content: string | Buffer; headers: Record<string, string> }
  | { status: number; stream: Readable; headers: Record<string, string> };
