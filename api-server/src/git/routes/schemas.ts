import { REPOSITORY_PATH, REPOSITORY_PATH_MAX_LENGTH } from "@slipway/git";
import { z } from "zod";

/** Texts without control characters: they are shown in lists and sent in HTTP headers. */
const plain = (most: number, about: string) =>
  z
    .string()
    .min(1)
    .max(most)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
    .regex(/^[^\x00-\x1f\x7f]+$/, "must not hold control characters")
    .describe(about);

export const instanceUrl = z
  .string()
  .min(1)
  .max(512)
  .describe("HTTPS address of the server, certified by somebody trusted.");
export const displayName = plain(64, "Name for people.");
export const repositoryPath = z
  .string()
  .max(REPOSITORY_PATH_MAX_LENGTH)
  .regex(REPOSITORY_PATH, "must be owner/name")
  .describe("A repository, `owner/name`, that the credential is tried on.");
/** A colon would end it in the header that it is sent in. */
export const username = plain(255, "User of the server.").regex(/^[^:]+$/, "must not hold a colon");
export const token = plain(1_024, "Access token of the user. It is never returned.");

export const capabilities = z.object({
  repositoryDiscovery: z.boolean(),
  pushDeploy: z.boolean(),
  nativePreviews: z.boolean(),
  versionDeploy: z.boolean(),
});

export const connectionSchema = z.object({
  id: z.string(),
  provider_id: z.enum(["forgejo", "github"]),
  instance_url: z.string(),
  display_name: z.string(),
  status: z
    .enum(["pending", "active", "unavailable", "revoked"])
    .describe(
      "pending: it is being made. unavailable: the server refused the credential when it was last asked.",
    ),
  connection_revision: z.int().min(1).describe("Counts the changes of the connection."),
  capabilities,
  created_at: z.string().optional(),
  updated_at: z.string().optional(),
});

export const repositorySchema = z.object({
  id: z.string().describe("Opaque, and good for this connection only."),
  path: z.string(),
  default_branch: z.string(),
  private: z.boolean(),
  web_url: z.string().optional(),
});
