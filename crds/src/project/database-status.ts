import { z } from "zod";
import { text, timestamp } from "../fields.ts";

const port = (about: string) => z.int().min(1).max(65535).meta({ description: about, format: "int32" });
const gigabytes = (about: string) => z.int().min(0).meta({ description: about, format: "int32" });

/** How a database or a key-value service is reached, and its state. Contains no secret. */
export const databaseStatus = z
  .strictObject({
    engine: text(1, 32, "What really runs: the engine, or its substitute on this cluster.").optional(),
    driver: text(1, 32, "What runs the engine, chosen at creation.").optional(),
    version: text(1, 32, "Version that was asked for and is in force.").optional(),
    runningVersion: text(1, 64, "Version as the server that accepts writes reports it.").optional(),
    primary: text(1, 253, "Pod that takes writes; absent while none does.").optional(),
    host: text(
      1,
      253,
      "Host that clients outside the cluster connect to; absent where they cannot.",
    ).optional(),
    port: port("Port that clients outside the cluster connect to.").optional(),
    inside: z
      .strictObject({
        host: text(1, 253, "Host that the organization's own projects connect to."),
        port: port("Port that they connect to."),
        replicasHost: text(1, 253, "Host that leads to the replicas, for reading.").optional(),
      })
      .describe("How it is reached from the organization's own projects.")
      .optional(),
    name: text(1, 63, "Name of the database.").optional(),
    username: text(1, 63, "User of the database.").optional(),
    referenceUsername: text(
      1,
      63,
      "User that references get in place of `username`: it acts for that one. Absent where they get the same.",
    ).optional(),
    previousPassword: z
      .strictObject({ until: timestamp("When it ends at the latest.") })
      .describe(
        "The password before the last renewal is accepted while instances that were started with it may log in; absent without one.",
      )
      .optional(),
    credentialsSecretRef: z
      .strictObject({ name: text(1, 253, "Name of the Secret.") })
      .describe("Secret that holds the password.")
      .optional(),
    credentialsHash: text(
      1,
      64,
      "Keyed hash of the content of that Secret that the engine has taken over.",
    ).optional(),
    setUpHash: text(
      1,
      64,
      "Which process of the primary was set up with which accounts, so that another leader need not do it again.",
    ).optional(),
    certificatesHash: text(
      1,
      64,
      "Which processes have read which certificate, so that another leader need not make them read it again.",
    ).optional(),
    bootstrappedAt: timestamp(
      "When it first accepted writes. From then on it is never initialised again.",
    ).optional(),
    identity: text(
      1,
      64,
      "Identity that the engine gave its data when it was initialised, such as a cluster's UUID.",
    ).optional(),
    restoredAt: timestamp("When the backup that it began with was loaded.").optional(),
    storage: z
      .strictObject({
        capacity: gigabytes("GB of each instance's volume that are in force."),
        resizing: z.boolean().describe("Whether volumes are growing.").optional(),
      })
      .describe("The volumes; absent without storage.")
      .optional(),
  })
  .describe("How the database is reached and how it stands. No secret is in it.");
export type DatabaseStatus = z.output<typeof databaseStatus>;
