import { tooLarge } from "./body.ts";

/** Data of an INSERT are handed over in pieces of this many bytes, where their format lets them be cut. */
const PIECE_BYTES = 8 * 1024 * 1024;

/** What cannot be cut is held in memory: no more than this. */
export const WHOLE_BYTES = 64 * 1024 * 1024;

/** Formats in which a line break is the end of a row, and nothing else. */
const LINES =
  /^(TabSeparated|TabSeparatedRaw|TSV|TSVRaw|JSONCompactEachRow|JSONCompactStringsEachRow|LineAsString)$/i;

/** Formats of objects, which may be written over several lines. */
const OBJECTS = /^(JSONEachRow|JSONStringsEachRow|JSONLines|NDJSON)$/i;

/**
 * Cuts an INSERT's data into pieces, each of which is whole rows.
 * @throws Failure when there is more of an uncuttable format than fits in memory
 */
export async function* pieces(
  format: string,
  data: AsyncIterable<Buffer>,
  limits = { piece: PIECE_BYTES, whole: WHOLE_BYTES },
): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let length = 0;
  let isArray: boolean | undefined;
  for await (const chunk of data) {
    held.push(chunk);
    length += chunk.length;
    isArray ??= startsWithBracket(chunk);
    if (length < limits.piece) {
      continue;
    }
    const all = Buffer.concat(held);
    const end = isArray ? 0 : lastRowEnd(format, all);
    if (end > 0) {
      yield all.subarray(0, end);
    }
    held = [all.subarray(end)];
    length -= end;
    if (length > limits.whole) {
      throw tooLarge(limits.whole);
    }
  }
  if (length > 0) {
    yield Buffer.concat(held);
  }
}

/** Offset behind the last row that certainly ends within `bytes`; 0 when none is known. */
function lastRowEnd(format: string, bytes: Buffer): number {
  if (LINES.test(format)) {
    return bytes.lastIndexOf(0x0a) + 1;
  }
  if (OBJECTS.test(format)) {
    return Math.max(...["}\n{", "}\r\n{"].map((seam) => seamEnd(bytes, seam)));
  }
  return 0;
}

/** Between two objects of one array there is a comma, so this is a seam between rows. */
function seamEnd(bytes: Buffer, seam: string): number {
  const at = bytes.lastIndexOf(seam);
  return at < 0 ? 0 : at + seam.length - 1;
}

/** Rows of JSON may come as one array; undefined while there are only spaces. */
function startsWithBracket(bytes: Buffer): boolean | undefined {
  const first = /\S/.exec(bytes.subarray(0, 1024).toString("latin1"))?.[0];
  return first === undefined ? undefined : first === "[";
}
