import type { OperationExamples } from "./example.ts";
import { EXAMPLE_CONNECTION_ID, EXAMPLE_REPOSITORY_ID } from "./id.ts";

const able = { repositoryDiscovery: true, pushDeploy: true, nativePreviews: false, versionDeploy: true };
const unable = { repositoryDiscovery: false, pushDeploy: false, nativePreviews: false, versionDeploy: false };

const connection = {
  id: EXAMPLE_CONNECTION_ID,
  provider_id: "forgejo",
  instance_url: "https://git.example.com",
  display_name: "Company Git",
  status: "active",
  connection_revision: 1,
  capabilities: able,
  created_at: "2026-11-21T12:00:00Z",
  updated_at: "2026-11-21T12:00:00.321Z",
};
const repository = {
  id: EXAMPLE_REPOSITORY_ID,
  path: "acme/shop",
  default_branch: "main",
  private: true,
  web_url: "https://git.example.com/acme/shop",
};

export const gitExamples = {
  listGitProviders: {
    responses: {
      200: {
        status: "success",
        data: {
          api_version: "v1",
          providers: [
            { id: "github", available: false, ...unable },
            { id: "forgejo", available: true, ...able },
            { id: "gitlab", available: false, ...unable },
          ],
        },
      },
    },
  },
  listGitRuntimes: {
    responses: {
      200: {
        status: "success",
        data: {
          runtimes: [
            { id: "node", name: "Node.js", available: true, versions: ["24", "22"], default_version: "24" },
            { id: "static", name: "Static files", available: true, versions: [], default_version: null },
          ],
        },
      },
    },
  },
  listGitConnections: { responses: { 200: { status: "success", data: { connections: [connection] } } } },
  createGitConnection: {
    requests: {
      forgejo: {
        summary: "A Forgejo or Gitea server",
        value: {
          provider_id: "forgejo",
          instance_url: "https://git.example.com",
          display_name: "Company Git",
          repository_path: "acme/shop",
          username: "slipway",
          token: "<access token>",
        },
      },
    },
    responses: { 201: { status: "success", message: "connected", data: { connection } } },
  },
  updateGitCredentials: {
    requests: { token: { summary: "Another token of the same user", value: { token: "<access token>" } } },
    responses: {
      200: {
        status: "success",
        message: "credential replaced",
        data: { connection: { ...connection, connection_revision: 2 } },
      },
    },
  },
  revokeGitConnection: {
    responses: {
      200: {
        status: "success",
        message: "the connection is revoked",
        data: {
          connection: { ...connection, status: "revoked", connection_revision: 2 },
          cleanup_pending: false,
        },
      },
    },
  },
  resolveGitRepository: {
    requests: { path: { summary: "By owner and name", value: { path: "acme/shop" } } },
    responses: { 200: { status: "success", data: repository } },
  },
  listGitRepositories: {
    responses: { 200: { status: "success", data: { repositories: [repository], next_cursor: "cGFnZToy" } } },
  },
  listGitBranches: {
    responses: {
      200: {
        status: "success",
        data: [{ name: "main", commit_sha: "3f2c1e0d9b8a7f6e5d4c3b2a1f0e9d8c7b6a5f4e" }],
      },
    },
  },
} as const satisfies Record<string, OperationExamples>;
