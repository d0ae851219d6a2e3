import type { OperationExamples } from "./example.ts";

const success = (data: unknown): OperationExamples => ({ responses: { 200: { status: "success", data } } });

const postgresql = {
  instances: { min: 1, default: 1, max: 3, editable: true },
  storage: { min: 1, default: 10, max: 250, included: 1, step: 1, editable: true },
  versions: ["15", "16", "17", "18"],
  default_version: "17",
  billing: { instances: "per_instance", storage: "per_instance_gb" },
};

export const catalogExamples = {
  listHttpPlans: success([
    {
      plan: "basic",
      prices: { hourly: 3, monthly: 2160, yearly: 25920 },
      features: ["0.5 CPU per instance", "512 MiB of memory per instance"],
      permissions: { free_storage_size: "1 GB" },
      capabilities: {
        logs: true,
        metrics: true,
        healthcheck: true,
        autoscaling: false,
        custom_subdomain: true,
        network_access: false,
      },
    },
  ]),
  listJobPlans: success([
    {
      plan: "job-basic",
      price_per_minute: 0.02,
      currency: "brl",
      payment_mode: "per_minute",
      features: ["0.5 CPU", "512 MiB of memory", "Runs of up to 60 minutes"],
      permissions: { free_storage_size: "1 GB" },
    },
  ]),
  listStoragePlans: success([
    { storage: "ssd", prices: { hourly: 0.1, monthly: 72, yearly: 864 }, persistent: true },
  ]),
  listDatabasePlans: success([
    {
      plan: "db-basic",
      prices: { hourly: 6, monthly: 4320, yearly: 51840 },
      features: ["0.5 CPU per instance", "512 MiB of memory per instance"],
      engines: { postgresql },
    },
  ]),
  listDatabaseCatalog: success([
    {
      id: "postgresql",
      name: "PostgreSQL",
      versions: ["15", "16", "17", "18"],
      plans: [{ id: "db-basic", payment_modes: ["hourly", "monthly", "yearly"], capability: postgresql }],
      configuration_fields: [
        { name: "instances", type: "number", required: true, description: "Number of instances." },
      ],
      connection_fields: [
        { name: "host", type: "string", required: true, description: "Host to connect to." },
      ],
    },
  ]),
  listTemplates: success([
    {
      id: "hello",
      revision: 1,
      name: "Hello",
      description: "The smallest project, on the free plan.",
      body: {
        plan: "free",
        payment_mode: "hourly",
        config: {
          type_project: "http",
          exposure: "public",
          image: { url: "docker.io/traefik/whoami:v1.11", is_public: true },
          port: 80,
          instances: 1,
          storage: { persistent: false, capacity: 1 },
          envs: [],
          network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "Everybody" }] },
        },
      },
    },
  ]),
  readOpenApi: {
    responses: { 200: { openapi: "3.1.0", info: { title: "Slipway", version: "1.0.0" }, paths: {} } },
  },
} as const satisfies Record<string, OperationExamples>;
