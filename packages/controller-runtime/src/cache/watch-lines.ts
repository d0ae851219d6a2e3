/** Splits a byte stream into lines. What follows the last newline when the stream ends is dropped: it is cut off. */
export async function* splitLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  // A large object comes in many chunks; they are joined once, when its newline comes.
  let pending: Uint8Array[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      pending.push(chunk.subarray(start, end));
      const line = Buffer.concat(pending).toString("utf8");
      pending = [];
      start = end + 1;
      if (line.trim() !== "") {
        yield line;
      }
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
    }
  }
}
