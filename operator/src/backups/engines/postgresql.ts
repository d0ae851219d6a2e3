/** PostgreSQL: `pg_dump`'s own format, of one snapshot, in which the rows are counted, too. */

import { credentialKeys } from "@slipway/crds";
import { accounts } from "../../databases/postgresql/names.ts";
import { CA_FILE, type EngineScripts, engineScripts } from "./engine.ts";

export const postgresqlScripts: EngineScripts = {
  name: "postgresql",
  counts: "rows",
  port: 5432,
  ...engineScripts("postgresql"),
  host: "PGHOST",
  credentials: {
    PGPASSWORD: credentialKeys.superuser,
    PGDATABASE: credentialKeys.database,
    DATABASE_OWNER: credentialKeys.username,
  },
  variables: {
    PGUSER: accounts.backup,
    PGSSLMODE: "verify-full",
    PGSSLROOTCERT: CA_FILE,
    PGCONNECT_TIMEOUT: "15",
  },
};
