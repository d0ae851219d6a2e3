import type { Level } from "@slipway/analytics";
import type { OutgoingLine } from "./receiver.ts";

/** Lines as messages of syslog (RFC 5424), framed by octet counting (RFC 5425). Pure. */

/** Facility `user`: programs of no facility of their own. */
const FACILITY = 1;
const SEVERITY: Readonly<Record<Level, number>> = {
  trace: 7,
  debug: 7,
  info: 6,
  warn: 4,
  error: 3,
  fatal: 2,
};

/** Octets of one message: what receivers should accept (RFC 5425, 4.3.1). A longer line is several messages. */
export const MESSAGE_BYTES = 8_192;

/** Name of the structured data. The number is the one that is free for everyone's use (RFC 5612): the platform has none of its own. */
const SD_ID = "slipway@32473";

/** Begins a message of UTF-8 (RFC 5424, 6.4). */
const BOM = "\uFEFF";

/** All lines as frames, each `LENGTH SP MESSAGE`. */
export function frames(lines: readonly OutgoingLine[]): Buffer {
  return Buffer.concat(
    lines.flatMap((line) =>
      messages(line).flatMap((message) => {
        const bytes = Buffer.from(message);
        return [Buffer.from(`${bytes.length} `), bytes];
      }),
    ),
  );
}

/** A line as messages, of which all but the last say that they continue. */
export function messages(line: OutgoingLine): string[] {
  const text = printable(line.text);
  // The longest header, and the mark of UTF-8.
  const room = MESSAGE_BYTES - Buffer.byteLength(header(line, true)) - 4;
  const pieces = cut(text, room);
  return pieces.map((piece, index) => {
    const continues = line.continues || index < pieces.length - 1;
    const mark = Buffer.byteLength(piece) === piece.length ? "" : BOM;
    return `${header(line, continues)} ${mark}${piece}`;
  });
}

function header(line: OutgoingLine, continues: boolean): string {
  const { organization, project, projectName, instance, container, stream, level, at, file, offset } = line;
  const priority = FACILITY * 8 + SEVERITY[level ?? "info"];
  const data = [
    ["organization", organization],
    ["project", project],
    ["instance", instance],
    ["container", container],
    ["uid", `${file}-${offset}`],
    ...(continues ? [["continues", "true"]] : []),
  ].map(([key, value]) => `${key}="${escaped(value as string)}"`);
  const fields = [
    timestamp(at),
    named(instance, 255),
    named(projectName, 48),
    named(container, 128),
    named(stream, 32),
  ];
  return `<${priority}>1 ${fields.join(" ")} [${SD_ID} ${data.join(" ")}]`;
}

/** Nanoseconds as RFC 3339, to the microsecond: a message takes no more digits. */
function timestamp(nanoseconds: string): string {
  const digits = nanoseconds.padStart(19, "0");
  const second = new Date(Number(digits.slice(0, -9)) * 1000).toISOString().slice(0, 19);
  return `${second}.${digits.slice(-9, -3)}Z`;
}

/** A field of the header: printable ASCII without blanks, `-` where there is none. */
function named(value: string, most: number): string {
  const text = value.replaceAll(/[^\x21-\x7e]+/g, "_").slice(0, most);
  return text === "" ? "-" : text;
}

const escaped = (value: string): string => value.replaceAll(/["\\\]]/g, "\\$&");

/** Control characters but tabs as `#ooo`, so that a line stays one for receivers that end messages at line breaks. */
function printable(text: string): string {
  return text.replaceAll(
    /[^\P{Cc}\t]/gu,
    (character) => `#${character.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
}

/** Text in pieces of at most so many bytes of UTF-8, between characters; an empty text is one piece. */
function cut(text: string, most: number): string[] {
  if (Buffer.byteLength(text) <= most) {
    return [text];
  }
  const pieces: string[] = [];
  let piece = "";
  let bytes = 0;
  for (const character of text) {
    const length = Buffer.byteLength(character);
    if (bytes + length > most) {
      pieces.push(piece);
      piece = "";
      bytes = 0;
    }
    piece += character;
    bytes += length;
  }
  return [...pieces, piece];
}
