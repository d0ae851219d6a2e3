import { CliError, type CommandDefinition } from "../core/command.ts";
import { findProject } from "../core/project.ts";

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: "open", win32: "explorer" };

export const open: CommandDefinition = {
  name: "open",
  summary: "Open a project in the browser",
  args: [{ name: "<project>", description: "id or name" }],
  options: [{ flags: "--print", description: "print the address alone" }],
  run: async (call) => {
    const { custom_domains: [custom] = [], domain } = await findProject(call.slipway(), call.args[0] ?? "");
    const hostname = custom ?? domain;
    if (hostname === undefined || hostname === "") {
      throw new CliError("the project has no domain: it is private, or no HTTP project");
    }
    const url = `https://${hostname}`;
    call.output.line(url);
    if (
      call.options.print !== true &&
      (await call.spawn(OPENERS[process.platform] ?? "xdg-open", [url])) === undefined
    ) {
      call.output.note("no browser to open it in: use the address");
    }
    return 0;
  },
};
