/** Bytes of a line's beginning that are kept while its end is waited for; what is shown of it is less. */
const MOST_KEPT = 32 * 1024;
const NEWLINE = 0x0a;

/** Cuts a log that goes on into pieces of whole lines. A last line without an end comes when the log does end. */
export async function* wholeLines(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const chunk of body) {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      yield Buffer.concat([kept, chunk.subarray(0, end)]);
      kept = Buffer.alloc(0);
    }
    const rest = chunk.subarray(end, end + MOST_KEPT - kept.length);
    if (rest.length > 0) {
      kept = Buffer.concat([kept, rest]);
    }
  }
  if (kept.length > 0) {
    yield kept;
  }
}
