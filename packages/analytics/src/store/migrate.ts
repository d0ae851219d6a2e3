import { foundation, type Migration, migrations, name } from "./schema.ts";
import { ask, type Store } from "./store.ts";

/**
 * Migrates the store to the newest schema: migrations that are recorded as applied are skipped, the rest are applied in order and
 * recorded. Two processes may do so concurrently, and one may continue where another was killed.
 * @returns versions that were applied now
 * @throws StoreUnavailable
 */
export async function migrate(store: Store, all: readonly Migration[] = migrations): Promise<number[]> {
  const { client } = store;
  for (const query of foundation(store)) {
    await ask(() => client.command({ query }));
  }
  const recorded = new Set(await appliedVersions(store));
  const applied: number[] = [];
  for (const { version, name: title, statements } of all) {
    if (recorded.has(version)) {
      continue;
    }
    for (const query of statements(store)) {
      await ask(() => client.command({ query }));
    }
    const table = name(store, "schema_migrations");
    const values = [{ version, name: title }];
    await ask(() =>
      client.insert({
        table,
        values,
        columns: ["version", "name"],
        format: "JSONEachRow",
        clickhouse_settings: { async_insert: 0 },
      }),
    );
    applied.push(version);
  }
  return applied;
}

/** @throws StoreUnavailable, also when there is no schema yet */
export async function appliedVersions(store: Store): Promise<number[]> {
  const query = `SELECT DISTINCT version FROM ${name(store, "schema_migrations")} ORDER BY version`;
  const answer = await ask(() =>
    store.client.query({ query, format: "JSONEachRow" }).then((found) => found.json()),
  );
  return (answer as { version: number }[]).map(({ version }) => version);
}
