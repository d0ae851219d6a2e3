import { z } from "zod";

/** Schemas of answers about databases and key-value services. */

export const connection = z.object({
  host: z.string(),
  port: z.int(),
  database: z.string(),
  username: z.string(),
});

const secretConnection = connection.extend({
  password: z.string().describe("Shown this once."),
  connectionString: z.string().describe("All of it as one address, shown this once."),
});

const around = {
  version: z.string(),
  replicas: z.int().describe("Instances."),
};

/** `database` of the answer to a creation. */
export const createdConnection = z
  .object({
    connection: connection
      .extend(secretConnection.partial({ password: true, connectionString: true }).shape)
      .nullable()
      .describe(
        "Null when the address is not assigned in time. Password and connection string come in the first answer alone.",
      ),
    ...around,
  })
  .describe("Of postgresql, mariadb and clickhouse.");

const profile = z.enum(["key_value", "cache", "queue"]);

const managedService = z.object({
  engine: z.literal("valkey"),
  profile,
  version: z.string(),
  username: z.string().nullable(),
  host: z.string().nullable().describe("Null when the address is not assigned in time."),
  port: z.int().nullable(),
  tls: z.boolean(),
});

/** `managed_service` of the answer to a creation. */
export const managedServiceCreated = managedService
  .extend({
    connection_string: z.string().describe("With the password; in the first answer alone.").optional(),
  })
  .describe("Of Valkey.");

const inside = z
  .object({
    host: z.string(),
    port: z.int(),
    replicas_host: z.string().describe("Leads to the replicas, for reading.").optional(),
  })
  .describe("How the organization's own projects connect.");

const previousPassword = {
  previous_password_expires_at: z.iso
    .datetime()
    .describe(
      "The password before the last renewal is still accepted, since instances that were started with it by reference may log in. It ends " +
        "with the last of them, and at this moment at the latest. Absent otherwise.",
    )
    .optional(),
};

/** What a renewal may be sent. */
export const renewalBody = z
  .strictObject({
    revoke_previous: z
      .boolean()
      .describe(
        "The password before this one ends immediately, also for instances that were started with it.",
      )
      .optional(),
  })
  .nullish();

/** What a connection's read answers. */
export const readConnection = z.object({
  connection: connection.nullable().describe("Null while the address is not assigned."),
  inside: inside.optional(),
  ...around,
  ...previousPassword,
  managed_service: managedService.describe("Of Valkey.").optional(),
});

/** What a renewal answers. */
export const renewedConnection = z.object({
  connection: secretConnection,
  ...around,
  ...previousPassword,
  managed_service: managedServiceCreated.optional(),
});
