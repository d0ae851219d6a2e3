import { foundation, type Migration, migrations, name } from "./schema.ts";
import { ask, type Store } from "./store.ts";

/**
 * Brings the store to the newest schema: what is noted as applied is left alone, the rest is applied in order and noted. Two
 * may do so at once, and one may go on where another was killed.
 * @returns versions that were applied now
 * @throws StoreUnavailable
 */
export async function migrate(store: Store, all: readonly Migration[] = migrations): Promise<number[]> {
  const { client } = store;
  for (const query of foundation(store)) {
    await ask(() => client.command({ query }));
  }
  const noted = new Set(await appliedVersions(store));
  const applied: number[] = [];
  for (const { version, name: title, statements } of all) {
    if (noted.has(version)) {
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
