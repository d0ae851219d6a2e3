/** MariaDB: SQL of one transaction. */

import { credentialKeys } from "@slipway/crds";
import { accounts } from "../../databases/mariadb/names.ts";
import { CA_FILE, type EngineScripts, engineScripts, SCRATCH } from "./engine.ts";

/** The password is in the environment. */
const LOGIN = `--host="$DATABASE_HOST" --port=3306 --user="$DATABASE_USER" --ssl-ca=${CA_FILE} --ssl-verify-server-cert`;
const LOCAL = `--socket=${SCRATCH}/sock --user=root`;
const CHARSET = "--default-character-set=utf8mb4";

export const mariadbScripts: EngineScripts = {
  name: "mariadb",
  counts: "rows",
  port: 3306,
  ...engineScripts("mariadb", {
    load: { CLIENT: `mariadb --no-defaults ${LOGIN} ${CHARSET} "$DATABASE_NAME"` },
    verify: { CLIENT: `mariadb --no-defaults ${LOCAL} ${CHARSET} trial` },
  }),
  host: "DATABASE_HOST",
  credentials: {
    DATABASE_USER: credentialKeys.username,
    MYSQL_PWD: credentialKeys.password,
    DATABASE_NAME: credentialKeys.database,
  },
  // What is loaded belongs to the user, and says so.
  dumpCredentials: { MYSQL_PWD: credentialKeys.superuser },
  dumpVariables: { DATABASE_USER: accounts.backup },
  variables: {},
};
