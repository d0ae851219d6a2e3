/**
 * `work` on every item, at most `maxConcurrent` at a time; the results are in the order of the items.
 * @throws what the first failing `work` threw; what has begun by then is not waited for
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  maxConcurrent: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of waiting) {
      results[index] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, items.length) }, worker));
  return results;
}
