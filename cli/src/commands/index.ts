import type { CommandDefinition } from "../core/command.ts";

/** Every command: its file is loaded only when it is called, which keeps the start short. */
export const commands: Readonly<Record<string, { summary: string; load: () => Promise<CommandDefinition> }>> =
  {
    login: { summary: "Save a server and its API key", load: async () => (await import("./login.ts")).login },
    projects: { summary: "List projects", load: async () => (await import("./projects.ts")).projects },
    create: { summary: "Create a project", load: async () => (await import("./create.ts")).create },
    deploy: {
      summary: "Deploy an image or a commit, and follow it to its end",
      load: async () => (await import("./deploy.ts")).deploy,
    },
    logs: { summary: "Print what instances write", load: async () => (await import("./logs.ts")).logs },
    env: { summary: "Read and change variables", load: async () => (await import("./env.ts")).env },
    run: {
      summary: "Run a command once, apart from the instances",
      load: async () => (await import("./run.ts")).run,
    },
    exec: { summary: "Run a command in an instance", load: async () => (await import("./exec.ts")).exec },
    rollback: {
      summary: "Return to an earlier deployment",
      load: async () => (await import("./rollback.ts")).rollback,
    },
    domains: { summary: "Read and change domains", load: async () => (await import("./domains.ts")).domains },
    scale: {
      summary: "Change the number of instances, or the plan",
      load: async () => (await import("./scale.ts")).scale,
    },
    db: { summary: "Use databases", load: async () => (await import("./db.ts")).db },
    jobs: { summary: "Use jobs", load: async () => (await import("./jobs.ts")).jobs },
    usage: {
      summary: "Print what a billing cycle costs",
      load: async () => (await import("./usage.ts")).usage,
    },
    invoices: {
      summary: "List invoices, or print one",
      load: async () => (await import("./invoices.ts")).invoices,
    },
    open: { summary: "Open a project in the browser", load: async () => (await import("./open.ts")).open },
    up: {
      summary: "Apply a file that describes projects",
      load: async () => (await import("./up.ts")).up,
    },
    doctor: {
      summary: "Check settings, server and credential",
      load: async () => (await import("./doctor.ts")).doctor,
    },
    completion: {
      summary: "Print a shell's completion",
      load: async () => (await import("./completion.ts")).completion,
    },
  };
