import { eventText } from "../http/event-streams.ts";
import type { LogLine } from "./lines.ts";

/** A line of one of several instances. */
export interface NamedLine extends LogLine {
  instance: string;
}

/** As an event; the id is the newest time of all that were sent, so that going on after it repeats nothing. */
export const lineEvent = ({ time, text, instance }: NamedLine, id: bigint): string =>
  eventText("log", { instance, timestamp: timestamp(time), message: text }, id);

/** RFC 3339 with all nine digits. */
function timestamp(time: bigint): string {
  const second = time / 1_000_000_000n;
  const moment = new Date(Number(second) * 1_000).toISOString().slice(0, 19);
  return `${moment}.${String(time - second * 1_000_000_000n).padStart(9, "0")}Z`;
}
