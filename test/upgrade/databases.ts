/** A database of each engine that is written to all the while; PostgreSQL's is the victim's of the hostile tests. */
import { clickhouseDriver, type Engine, mariadbDriver, valkeyDriver } from "../chaos/support/engines.ts";
import { lostRows, Writer } from "../e2e/support/acknowledged.ts";
import { apiClient, deleteProjects } from "../e2e/support/api.ts";
import { createDatabase, untilReady } from "../e2e/support/databases.ts";
import { eventually } from "../e2e/support/eventually.ts";
import type { Organization } from "../e2e/support/organization.ts";
import { valkeyProject } from "../e2e/support/valkey.ts";
import type { Outcome } from "./report.ts";

/** Of one instance where the engine permits it: the machine of a test has two processors. */
const engines: readonly Engine[] = [
  mariadbDriver,
  { ...valkeyDriver, body: () => valkeyProject("db-basic", "key_value") },
  clickhouseDriver,
];
/** Milliseconds between two rows. */
const EVERY = 200;

export interface WrittenDatabases {
  /** Ends writing and compares what was acknowledged with what is there. */
  finish(): Promise<Outcome["rows"]>;
  remove(): Promise<void>;
}

export async function startDatabases({ organization_id, api_key }: Organization): Promise<WrittenDatabases> {
  const call = apiClient(api_key);
  const written = await Promise.all(
    engines.map(async (engine) => {
      const project = await createDatabase(call, engine.body(), organization_id);
      await untilReady(project, 300_000);
      await eventually(async () => (await engine.open(project)).close());
      return { engine, project, writer: new Writer(() => engine.open(project), EVERY) };
    }),
  );
  return {
    finish: () =>
      Promise.all(
        written.map(async ({ engine, project, writer }) => {
          await writer.untilWrites();
          await writer.stop();
          const found = await eventually(() => engine.rows(project));
          return {
            engine: engine.name,
            acknowledged: writer.acknowledged.length,
            lost: lostRows(writer.acknowledged, found).length,
            failures: writer.failures,
          };
        }),
      ),
    remove: () =>
      deleteProjects(
        call,
        written.map(({ project }) => project.id),
      ),
  };
}
