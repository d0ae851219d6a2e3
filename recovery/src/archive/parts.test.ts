import { expect, test } from "vitest";
import { partsOf } from "./parts.ts";

async function sizes(chunks: number[], size: number): Promise<[number[], boolean]> {
  const bytes = chunks.map((length, index) => Buffer.alloc(length, index + 1));
  const parts: Buffer[] = [];
  async function* source() {
    yield* bytes;
  }
  for await (const part of partsOf(source(), size)) {
    parts.push(Buffer.from(part));
  }
  return [parts.map(({ length }) => length), Buffer.concat(parts).equals(Buffer.concat(bytes))];
}

test.for<[chunks: number[], parts: number[]]>([
  [[], [0]],
  [[3], [3]],
  [[10], [10]],
  [[25], [10, 10, 5]],
  [
    [4, 4, 4, 8],
    [10, 10],
  ],
  [
    [1, 0, 30],
    [10, 10, 10, 1],
  ],
])("chunks of %j bytes come in parts of ten: %j", async ([chunks, parts]) => {
  expect(await sizes(chunks, 10)).toEqual([parts, true]);
});
