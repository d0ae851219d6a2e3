import type { OperationExamples } from "./example.ts";
import { EXAMPLE_ID } from "./id.ts";

const connection = { host: "db.example.com", port: 31432, database: "app", username: "app" };
const password = "Zb3XqT0mKc8VnR5sYw2LdF7hGj9PaE4u";

export const databaseExamples = {
  readDatabaseConnection: {
    responses: {
      200: {
        status: "success",
        data: {
          connection,
          inside: {
            host: `${EXAMPLE_ID}.slipway-org-acme.svc`,
            port: 5432,
            replicas_host: `${EXAMPLE_ID}-replicas.slipway-org-acme.svc`,
          },
          version: "17",
          replicas: 3,
        },
      },
    },
  },
  renewDatabaseCredentials: {
    responses: {
      200: {
        status: "success",
        message: "credentials renewed",
        data: {
          connection: {
            ...connection,
            password,
            connectionString: `postgresql://app:${password}@db.example.com:31432/app`,
          },
          version: "17",
          replicas: 3,
        },
      },
    },
  },
} as const satisfies Record<string, OperationExamples>;
