import { defineConfig } from "vitest/config";

const rooms = "{crds,kube,ledger,operator,api-server,hack,test}";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: [`${rooms}/**/*.test.ts`],
          exclude: ["**/node_modules/**", "**/*.integration.test.ts", "**/*.e2e.test.ts"],
        },
      },
      {
        // Needs the cluster binaries (hack/up.sh builds them) and PostgreSQL's tools.
        test: {
          name: "integration",
          include: [`${rooms}/**/*.integration.test.ts`],
          exclude: ["**/node_modules/**"],
          testTimeout: 60_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
      {
        // Needs a running stack: reads .slipway/stack.env.
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.e2e.test.ts"],
          exclude: ["**/node_modules/**"],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
