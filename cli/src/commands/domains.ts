import type { CommandDefinition, Invocation } from "../core/command.ts";
import { findProject } from "../core/project.ts";

const project = { name: "<project>", description: "id or name" };
const hostname = { name: "<hostname>", description: "for example shop.example.com" };

/** Replaces the list by what a change leads to. */
async function change(call: Invocation, to: (hostnames: readonly string[]) => string[]): Promise<number> {
  const slipway = call.slipway();
  const { id, custom_domains: before = [] } = await findProject(slipway, call.args[0] ?? "");
  const after = to(before);
  if (JSON.stringify(after) === JSON.stringify(before)) {
    call.output.note("no changes");
    return 0;
  }
  const { custom_domain_setup: setup = [] } = await slipway.PATCH("/v1/project/{id}/custom-domains", {
    params: { path: { id } },
    body: { custom_domains: after },
  });
  const records = setup.flatMap((domain) => domain.dns_records.map((record) => ({ ...record, ...domain })));
  await call.output.list(records, {
    hostname: (row) => row.hostname,
    status: ({ status }) => status,
    type: ({ type }) => type,
    name: ({ name }) => name,
    value: ({ value }) => value,
  });
  return 0;
}

export const domains: CommandDefinition = {
  name: "domains",
  summary: "Read and change domains",
  subcommands: [
    {
      name: "list",
      summary: "List a project's domains",
      args: [project],
      run: async (call) => {
        const { domain, custom_domains: custom = [] } = await findProject(call.slipway(), call.args[0] ?? "");
        const rows = [
          ...(domain === undefined || domain === "" ? [] : [{ hostname: domain, kind: "default" }]),
          ...custom.map((name) => ({ hostname: name, kind: "custom" })),
        ];
        await call.output.list(rows, { hostname: (row) => row.hostname, kind: ({ kind }) => kind });
        return 0;
      },
    },
    {
      name: "add",
      summary: "Add a custom domain, and print the DNS records that it needs",
      args: [project, hostname],
      run: async (call) => change(call, (all) => [...new Set([...all, call.args[1] ?? ""])]),
    },
    {
      name: "remove",
      summary: "Remove a custom domain",
      args: [project, hostname],
      run: async (call) => {
        await call.confirm(`remove ${call.args[1]}?`);
        return change(call, (all) => all.filter((name) => name !== call.args[1]));
      },
    },
  ],
};
