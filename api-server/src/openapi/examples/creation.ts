import type { OperationExamples } from "./example.ts";
import { EXAMPLE_CONNECTION_ID, EXAMPLE_ID, EXAMPLE_REPOSITORY_ID } from "./id.ts";

const everybody = { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "Everybody" }] };
const database = {
  instances: 1,
  storage: { persistent: true, capacity: 10 },
  envs: [],
  network_access: everybody,
};

/** The smallest HTTP application. */
const application = {
  type_project: "http",
  exposure: "public",
  image: { url: "docker.io/traefik/whoami:v1.11", is_public: true },
  port: 80,
  instances: 1,
  storage: { persistent: false, capacity: 1 },
  envs: [],
  network_access: everybody,
};

const { image: _image, ...withoutImage } = application;

export const creationExamples = {
  createProject: {
    requests: {
      application: {
        summary: "An HTTP application on the free plan",
        value: { name: "hello-world", plan: "free", payment_mode: "hourly", config: application },
      },
      application_with_everything: {
        summary: "An HTTP application from a private image, with storage, health check and autoscaling",
        value: {
          name: "shop-front",
          description: "The shop's front end",
          plan: "premium",
          payment_mode: "monthly",
          config: {
            ...application,
            image: {
              url: "registry.example.com/shop/front:2.7.1",
              is_public: false,
              authentication: { auth_type: "username_password", username: "shop", token: "a-registry-token" },
            },
            port: 8080,
            storage: { persistent: true, capacity: 5, dir_path_to_persist: "/data" },
            envs: [{ name: "LOG_LEVEL", value: "info" }],
            network_access: {
              ingress_white_list: [{ cidr: "203.0.113.0/24", description: "Office" }],
              ingress_black_list: [{ cidr: "203.0.113.66/32", description: "Guests" }],
            },
            subdomain: "shop-front",
            healthcheck: { enabled: true, path: "/healthz" },
          },
        },
      },
      application_from_git: {
        summary: "An HTTP application that is built from a Git repository, and again with every push",
        value: {
          name: "shop-front",
          plan: "basic",
          payment_mode: "monthly",
          config: {
            ...withoutImage,
            port: 8080,
            source: {
              connection_id: EXAMPLE_CONNECTION_ID,
              repository_id: EXAMPLE_REPOSITORY_ID,
              branch: "main",
              auto_deploy: true,
            },
            build: { start_command: "node server.js", context_path: "web" },
          },
        },
      },
      private_application: {
        summary: "An HTTP application that only the organization's own projects reach",
        value: {
          name: "shop-stock",
          plan: "premium",
          payment_mode: "hourly",
          config: {
            ...application,
            exposure: "private",
            instances: 2,
            autoscaling: { enabled: true, max_instances: 5, cpu_target_percentage: 70 },
          },
        },
      },
      from_a_template: {
        summary: "From a template: what is sent wins over the template's",
        value: { template_id: "hello", template_revision: 1, name: "from-template", plan: "basic" },
      },
      postgresql: {
        summary: "A PostgreSQL database",
        value: {
          name: "shop-database",
          plan: "db-basic",
          payment_mode: "hourly",
          config: { type_project: "postgresql", version: "17", ...database },
        },
      },
      mariadb: {
        summary: "A MariaDB cluster",
        value: {
          name: "shop-orders",
          plan: "db-basic",
          payment_mode: "hourly",
          config: { type_project: "mariadb", version: "11", ...database, instances: 3 },
        },
      },
      clickhouse: {
        summary: "A ClickHouse database for analytics",
        value: {
          name: "shop-analytics",
          plan: "analytics-basic",
          payment_mode: "monthly",
          config: { type_project: "clickhouse", version: "26.8.6.5", ...database },
        },
      },
      valkey_queue: {
        summary: "A Valkey queue; it needs an Idempotency-Key",
        value: {
          name: "shop-queue",
          plan: "queue-basic",
          payment_mode: "hourly",
          config: {
            type_project: "valkey",
            profile: "queue",
            version: "9.1.1",
            storage: { persistent: true, capacity: 5 },
            network_access: { ingress_white_list: [{ cidr: "203.0.113.0/24", description: "Office" }] },
          },
        },
      },
      valkey: {
        summary: "A Valkey cache; it needs an Idempotency-Key",
        value: {
          name: "shop-cache",
          plan: "cache-basic",
          payment_mode: "hourly",
          config: { type_project: "valkey", profile: "cache", version: "9.1.1" },
        },
      },
      job: {
        summary: "A scheduled job",
        value: {
          name: "nightly-report",
          plan: "job-basic",
          payment_mode: "per_minute",
          config: {
            type_project: "job",
            image: { url: "docker.io/library/busybox:1.37", is_public: true },
            envs: [],
            storage: { persistent: false, capacity: 1 },
            job: { cron: "0 3 * * *", command: ["date"] },
          },
        },
      },
    },
    responses: {
      201: {
        status: "success",
        message: "project created",
        data: {
          project_id: EXAMPLE_ID,
          domain: "hello-world-5f0c1a2b.apps.example.com",
          type: "application",
        },
      },
    },
  },
} as const satisfies Record<string, OperationExamples>;
