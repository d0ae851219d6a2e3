import { z } from "zod";
import { conditions } from "./conditions.ts";
import { matching, objectName, observedGeneration, text, timestamp } from "./fields.ts";
import type { Resource } from "./metadata.ts";
import { mapOf, rule, type TransitionRule, withRules } from "./rule.ts";

/** Condition types of a GitConnection. */
export const gitConnectionConditions = {
  /** Positive, summary: the server accepted the credential at the last request. False for good once it is revoked. */
  Ready: "Ready",
  /** Positive, only once revoked: no hook of the platform is left at the server. */
  CleanedUp: "CleanedUp",
} as const;
export type GitConnectionCondition = keyof typeof gitConnectionConditions;

/** Reasons of a GitConnection's conditions. */
export const gitConnectionReasons = {
  CredentialTaken: "CredentialTaken",
  CredentialRefused: "CredentialRefused",
  Revoked: "Revoked",
  HooksRemain: "HooksRemain",
} as const;
export type GitConnectionReason = keyof typeof gitConnectionReasons;
/** What conditions of a GitConnection may say. */
export interface GitConnectionConditionCatalog {
  type: GitConnectionCondition;
  reason: GitConnectionReason;
}

/** Providers whose servers can be connected. */
export const gitProviders = ["forgejo", "github"] as const;
export type GitProviderId = (typeof gitProviders)[number];

/** States of a connection. Without a status it is being made. */
export const gitConnectionPhases = ["active", "unavailable", "revoked"] as const;
export type GitConnectionPhase = (typeof gitConnectionPhases)[number];

/** The form of a connection's name, which is its id. */
export const GIT_CONNECTION_ID = /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/;

const fields = z
  .strictObject({
    providerId: z.enum(gitProviders).describe("What serves Git there. Gitea counts as forgejo."),
    instanceUrl: matching(
      /^https:\/\/[a-z0-9.:[\]-]+(\/[A-Za-z0-9._~-]+)*$/,
      "must be an address https://host[:port][/path] without a slash at the end",
      512,
      "Address of the server.",
    ),
    displayName: text(1, 64, "Name that people gave it."),
    credentialRef: z
      .strictObject({
        name: objectName(
          "Secret of the same namespace with username, token and hookSecret; of github with hookSecret alone.",
        ),
      })
      .describe("What the platform says who it is with."),
    repositoryPath: matching(
      /^[A-Za-z0-9_][A-Za-z0-9._-]*\/[A-Za-z0-9_][A-Za-z0-9._-]*$/,
      "must be owner/name",
      256,
      "Repository that the credential was tried on.",
    ).optional(),
    installationId: matching(
      /^[0-9]{1,20}$/,
      "must be a number",
      20,
      "Installation of the platform's GitHub App; only of github.",
    ).optional(),
    account: text(1, 100, "Account of GitHub that the App is installed in.").optional(),
    revision: z.int().min(1).meta({ description: "Counts the changes of the connection.", format: "int64" }),
    revokedAt: timestamp(
      "When it was revoked: from then on nothing uses the credential but the removal of hooks.",
    ).optional(),
  })
  .describe("Access of an organization to a Git server.");
export type GitConnectionSpec = z.output<typeof fields>;

const fixed = (["providerId", "instanceUrl"] as const).map(
  (field): TransitionRule<GitConnectionSpec> => ({
    cel: `self.${field} == oldSelf.${field}`,
    check: (self, old) => self[field] === old[field],
    message: `{${field}} cannot be changed`,
    fields: [field],
  }),
);

export const gitConnectionSpec = withRules(
  fields,
  [
    rule<GitConnectionSpec>({
      cel: "(self.providerId == 'github') == has(self.installationId)",
      check: ({ providerId, installationId }) => (providerId === "github") === (installationId !== undefined),
      message: "{installationId} is required of github, and of no other {providerId}",
      fields: ["installationId", "providerId"],
    }),
  ],
  [
    ...fixed,
    {
      cel: "!has(oldSelf.revokedAt) || (has(self.revokedAt) && self.revokedAt == oldSelf.revokedAt)",
      check: (self, old) => old.revokedAt === undefined || self.revokedAt === old.revokedAt,
      message: "{revokedAt} cannot be changed: a revoked connection stays so",
      fields: ["revokedAt"],
    },
    {
      cel: "self.revision >= oldSelf.revision",
      check: (self, old) => self.revision >= old.revision,
      message: "{revision} cannot go back",
      fields: ["revision"],
    },
  ],
);

const capability = (about: string) => z.boolean().describe(about);

const hooks = mapOf(
  z
    .array(
      z
        .strictObject({
          repositoryId: text(1, 64, "The server's own id of the repository."),
          url: text(1, 1024, "Where its deliveries go."),
          path: text(3, 256, "Path of the repository, of GitHub, whose projects know it by that.").optional(),
        })
        .describe("A repository with a hook."),
    )
    .max(200),
  "repositoryId",
).describe("Repositories at the server that have a hook of the platform.");

export const gitConnectionStatus = z
  .strictObject({
    observedGeneration: observedGeneration("Generation that this is about."),
    phase: z.enum(gitConnectionPhases).describe("State of the connection.").optional(),
    conditions: conditions.optional(),
    capabilities: z
      .strictObject({
        repositoryDiscovery: capability("Repositories can be listed."),
        pushDeploy: capability("Pushes can start builds."),
        nativePreviews: capability("Previews of proposed changes can be made."),
        versionDeploy: capability("Tags and releases can start builds."),
      })
      .describe("What the connection can do.")
      .optional(),
    hooks: hooks.optional(),
  })
  .describe("What became of the connection.");
export type GitConnectionStatus = z.output<typeof gitConnectionStatus>;

/** Access of an organization to a Git server. */
export type GitConnection = Resource<"GitConnection", GitConnectionSpec, GitConnectionStatus>;

/**
 * The connections that a GitHub repository may be reached through, the likeliest first: an installation sees repositories of its
 * own account, which may have been renamed. Pure.
 */
export function githubConnections(connections: readonly GitConnection[], owner: string): GitConnection[] {
  const isOwner = ({ spec }: GitConnection) => spec.account?.toLowerCase() === owner.toLowerCase();
  const usable = connections.filter(
    ({ metadata, spec }) =>
      spec.providerId === "github" &&
      spec.revokedAt === undefined &&
      metadata.deletionTimestamp === undefined,
  );
  return [...usable.filter(isOwner), ...usable.filter((one) => !isOwner(one))];
}
