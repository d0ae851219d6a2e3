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
  const waiting = [...items];
  let failure: { error: unknown } | undefined;
  async function next(): Promise<void> {
    while (waiting.length > 0 && failure === undefined) {
      try {
        await work(waiting.shift() as T);
      } catch (error) {
        failure ??= { error };
      }
    }
  }
  await Promise.all(Array.from({ length: limit }, next));
  if (failure !== undefined) {
    throw failure.error;
  }
}
