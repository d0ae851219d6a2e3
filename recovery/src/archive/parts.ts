/** Bytes in parts of one size, but for the last one, which is smaller or empty. At least one. @param size bytes of a part */
export async function* partsOf(bytes: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Uint8Array> {
  let part = Buffer.allocUnsafe(size);
  let filled = 0;
  let isFirst = true;
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length; ) {
      const taken = Math.min(size - filled, chunk.length - at);
      part.set(chunk.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled === size) {
        yield part;
        isFirst = false;
        // The one before it may still be on its way.
        part = Buffer.allocUnsafe(size);
        filled = 0;
      }
    }
  }
  if (filled > 0 || isFirst) {
    yield part.subarray(0, filled);
  }
}
