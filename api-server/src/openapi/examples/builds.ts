import type { OperationExamples } from "./example.ts";
import { EXAMPLE_BUILD_ID, EXAMPLE_CONNECTION_ID, EXAMPLE_REPOSITORY_ID } from "./id.ts";

const COMMIT = "3f2c1e0d9b8a7f6e5d4c3b2a1f0e9d8c7b6a5f4e";

const versionsOff = { enabled: false, event: "tag", tag_pattern: "*", include_prereleases: false };
const projection = {
  source: {
    connection_id: EXAMPLE_CONNECTION_ID,
    repository_id: EXAMPLE_REPOSITORY_ID,
    branch: "main",
    auto_deploy: true,
    version_deploy: versionsOff,
    provider_id: "forgejo",
    repository_path: "acme/shop",
  },
  build: {
    runtime: "node",
    version: "24",
    start_command: "node server.js",
    pre_build_command: null,
    build_command: null,
    dockerfile_path: null,
    context_path: ".",
  },
  source_revision: 2,
  capabilities: { repositoryDiscovery: true, pushDeploy: true, nativePreviews: false, versionDeploy: true },
};
const shown = { responses: { 200: { status: "success", data: projection } } };

const build = {
  id: EXAMPLE_BUILD_ID,
  commit_sha: COMMIT,
  branch: "main",
  status: "success",
  started_at: "2026-11-21T12:00:01.120Z",
  finished_at: "2026-11-21T12:00:09.480Z",
  created_at: "2026-11-21T12:00:00.004Z",
  updated_at: "2026-11-21T12:00:09.502Z",
  triggered_by: "push",
  diagnosis_status: "not_requested",
};
const list = {
  responses: { 200: { status: "success", data: [build], pagination: { total: 1, page: 1, limit: 10 } } },
};
const read = { responses: { 200: { status: "success", data: build } } };
const log = {
  responses: {
    200: {
      status: "success",
      data: {
        logs: [
          {
            sequence: 3_000_017,
            timestamp: "2026-11-21T12:00:05.314Z",
            level: "info",
            step: "build",
            message: "added 68 packages in 2s",
            final: false,
          },
        ],
        next_cursor: 3_000_017,
        status: "building",
        finished: false,
        truncated: false,
      },
    },
  },
};
const deploy = {
  requests: {
    newest: { summary: "The branch's newest commit, or the latest version", value: {} },
    commit: { summary: "A commit", value: { branch: "main", commit_sha: COMMIT } },
  },
  responses: { 202: started() },
};

function started() {
  return { status: "success", message: "the build begins", data: { build_id: EXAMPLE_BUILD_ID } };
}

export const buildExamples = {
  receiveGitHook: {
    requests: {
      push: {
        summary: "A push, shortened",
        value: { ref: "refs/heads/main", after: COMMIT, repository: { id: 17, full_name: "acme/shop" } },
      },
    },
    responses: {
      202: {
        status: "success",
        message: "the delivery is dealt with in the background",
        data: { outcome: "taken" },
      },
    },
  },
  readProjectSource: shown,
  updateProjectSource: {
    requests: {
      push: {
        summary: "Published with every push",
        value: {
          source: {
            connection_id: EXAMPLE_CONNECTION_ID,
            repository_id: EXAMPLE_REPOSITORY_ID,
            branch: "main",
            auto_deploy: true,
          },
          build: { runtime: "node", version: "24", start_command: "node server.js" },
        },
      },
      tag: {
        summary: "Published with every tag that matches",
        value: {
          source: {
            connection_id: EXAMPLE_CONNECTION_ID,
            repository_id: EXAMPLE_REPOSITORY_ID,
            branch: "main",
            auto_deploy: false,
            version_deploy: { enabled: true, event: "tag", tag_pattern: "v*" },
          },
          build: {},
        },
      },
    },
    ...shown,
  },
  deleteProjectSource: {
    responses: {
      200: { status: "success", data: { source: null, build: null, source_revision: 3, capabilities: null } },
    },
  },
  updateBuildSettings: {
    requests: {
      command: {
        summary: "Another start command",
        value: { start_command: "node server.js", build_command: null },
      },
    },
    ...shown,
  },
  listSourceBranches: {
    responses: { 200: { status: "success", data: [{ name: "main", commit_sha: COMMIT }] } },
  },
  deployProject: deploy,
  listBuilds: list,
  readBuild: read,
  readBuildLogs: log,
  deployGithubProject: deploy,
  listGithubBuilds: list,
  readGithubBuild: read,
  readGithubBuildLogs: log,
  updateGithubCommands: {
    requests: { build: { summary: "Another build command", value: { build_command: "npm run build" } } },
    responses: { 202: started() },
  },
  updateGithubDeploySettings: {
    requests: {
      release: {
        summary: "Published with every release",
        value: { auto_deploy: false, version_deploy: { enabled: true, event: "release", tag_pattern: "*" } },
      },
    },
    responses: {
      200: {
        status: "success",
        data: {
          repository_owner: "acme",
          repository_name: "shop",
          branch: "main",
          auto_deploy: false,
          version_deploy: { enabled: true, event: "release", tag_pattern: "*", include_prereleases: false },
        },
      },
    },
  },
} as const satisfies Record<string, OperationExamples>;
