/**
 * Does the same work for each of `items`, `limit` of them at once, begun in their order. None is begun after a failure, and what is
 * under way then is awaited.
 * @throws what the first that failed threw
 */
export async function forEachConcurrently<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  // Shared: each worker goes on with what no other has begun.
  const remaining = items.values();
  const failures: unknown[] = [];
  async function worker(): Promise<void> {
    for (const item of remaining) {
      await work(item).catch((error: unknown) => failures.push(error));
      if (failures.length > 0) {
        return;
      }
    }
  }
  await Promise.all(Array.from({ length: limit }, worker));
  if (failures.length > 0) {
    throw failures[0];
  }
}

/**
 * Runs what does not depend on one another side by side, and waits for all of it, also when a part fails.
 * @throws what the first part that failed throws
 */
export async function sideBySide<A, B>(one: () => Promise<A>, other: () => Promise<B>): Promise<[A, B]> {
  const [a, b] = await Promise.allSettled([one(), other()]);
  if (a.status === "rejected") {
    throw a.reason;
  }
  if (b.status === "rejected") {
    throw b.reason;
  }
  return [a.value, b.value];
}
