import { CliError, type CommandDefinition, textOf } from "../core/command.ts";
import { saveProfile } from "../core/profiles.ts";

export const login: CommandDefinition = {
  name: "login",
  summary: "Save a server and its API key",
  details:
    "The key is read from standard input, or else is `SLIPWAY_API_KEY`: as an argument it would be in the shell's history. It is tried before it is saved, in a file of mode 0600.",
  options: [{ flags: "--name <profile>", description: "name of the profile that is saved" }],
  run: async (call) => {
    const { settings, output, input } = call;
    if (settings.url === undefined) {
      throw new CliError("which server? give --url https://api.example.com, or set SLIPWAY_URL");
    }
    const given = call.environment.SLIPWAY_API_KEY ?? "";
    if (given === "" && input.isTerminal) {
      output.note("paste the API key, then press Enter and Ctrl-D:");
    }
    const apiKey = given === "" ? (await input.readAll()).trim() : given;
    if (apiKey === "") {
      throw new CliError("no API key: write it to standard input, or set SLIPWAY_API_KEY");
    }
    const slipway = call.connect(settings.url, apiKey);
    const { data } = await slipway.GET("/v1/project", { params: { query: { limit: 1 } } });
    const name = textOf(call, "name") ?? settings.profile;
    await saveProfile(settings.file, name, { url: settings.url, apiKey });
    const found = data.pagination.total;
    output.note(
      `saved profile ${name} in ${settings.file}: ${found} ${found === 1 ? "project" : "projects"}`,
    );
    return 0;
  },
};
