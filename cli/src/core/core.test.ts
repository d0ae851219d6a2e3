import { SlipwayError } from "@slipway/sdk";
import { describe, expect, it } from "vitest";
import { completionScript, SHELLS } from "./completion.ts";
import { clientCommand, shown } from "./database-clients.ts";
import { readDescription, referencesOf } from "./description.ts";
import { parseAssignment, parseDotenv, withVariables } from "./dotenv.ts";
import { execUrl, exitCodeOf, frame } from "./exec-frames.ts";
import { describeFailure } from "./failures.ts";
import { formatCents } from "./money.ts";
import { hasColour } from "./output.ts";
import { profilePath, resolveSettings } from "./settings.ts";
import { formatTable } from "./table.ts";

describe("tables", () => {
  const plain = { hasColour: false };

  it("have columns as wide as their widest cell, and no spaces at an end", () => {
    const text = formatTable(
      ["id", "status"],
      [
        ["p1", "running"],
        ["p22222", undefined],
      ],
      plain,
    );
    expect(text).toBe("ID      STATUS\np1      running\np22222\n");
  });

  it("show what a terminal would act on", () => {
    expect(formatTable([], [["\u001b[31mred\n"]], plain)).toBe("\\x1b[31mred\\x0a\n");
  });

  it("have colours on a terminal alone, and never with NO_COLOR", () => {
    expect(formatTable([], [["running"]], { hasColour: true })).toContain("\u001b[32mrunning");
    expect(hasColour(true, {})).toBe(true);
    expect(hasColour(true, { NO_COLOR: "1" })).toBe(false);
    expect(hasColour(true, { TERM: "dumb" })).toBe(false);
    expect(hasColour(false, {})).toBe(false);
  });
});

describe("files of variables", () => {
  it("have comments, quotes, several lines and escapes", () => {
    const text = '# first\nA=1\nexport B = two words # why\nC=\'$x #1\'\n\nD="a\\nb\\""\r\nE="x\ny"\nF=\nA=2';
    expect(parseDotenv(text)).toEqual([
      { name: "A", value: "2" },
      { name: "B", value: "two words" },
      { name: "C", value: "$x #1" },
      { name: "D", value: 'a\nb"' },
      { name: "E", value: "x\ny" },
      { name: "F", value: "" },
    ]);
  });

  it("are refused with the line, without its value", () => {
    expect(() => parseDotenv("A=1\nsecret")).toThrow("line 2 is no variable");
    expect(() => parseAssignment("=secret")).toThrow(/^(?!.*secret)/);
  });

  it("keep the order of what there was", () => {
    const all = [parseAssignment("A=1"), parseAssignment("B=a=b")];
    expect(withVariables(all, [parseAssignment("A=3"), parseAssignment("C=")])).toEqual([
      { name: "A", value: "3" },
      { name: "B", value: "a=b" },
      { name: "C", value: "" },
    ]);
  });
});

describe("descriptions of several projects", () => {
  const describe2 = (projects: object) => readDescription({ projects }).map(({ name }) => name);

  it("are ordered by their references", () => {
    const envs = { URL: `\${project:shop-db.host}`, TEXT: `$\${project:other.host}` };
    expect(describe2({ "shop-front": { config: { envs } }, "shop-db": {} })).toEqual([
      "shop-db",
      "shop-front",
    ]);
    expect(referencesOf([{ name: "A", value: `$\${project:x.host} $$\${project:y.host}` }])).toEqual(["y"]);
  });

  it("are refused for circles, and for fields that there are not", () => {
    const to = (name: string) => ({ config: { envs: { U: `\${project:${name}.host}` } } });
    expect(() => describe2({ one: to("two"), two: to("one") })).toThrow("one → two → one");
    expect(() => describe2({ one: { image: "x" } })).toThrow("projects.one has a field image");
    expect(() => readDescription({ apps: {} })).toThrow("field apps");
    expect(() => readDescription("text")).toThrow("the file is to be an object");
  });
});

describe("settings", () => {
  const file = {
    current: "work",
    profiles: { work: { url: "https://a", apiKey: "k1" }, home: { url: "https://b", apiKey: "k2" } },
  };

  it("are options, then variables, then the profile", () => {
    const base = { HOME: "/home/ada" };
    expect(resolveSettings(file, {}, base)).toMatchObject({
      url: "https://a",
      apiKey: "k1",
      profile: "work",
    });
    expect(resolveSettings(file, { profile: "home" }, base)).toMatchObject({
      url: "https://b",
      apiKey: "k2",
    });
    const variables = { ...base, SLIPWAY_URL: "https://c", SLIPWAY_API_KEY: "k3" };
    expect(resolveSettings(file, {}, variables)).toMatchObject({ url: "https://c", apiKey: "k3" });
    expect(resolveSettings(file, { url: "https://d" }, variables)).toMatchObject({ url: "https://d" });
    expect(resolveSettings(undefined, {}, { ...base, SLIPWAY_URL: "" })).toMatchObject({ url: undefined });
  });

  it("are in the folder of the specification", () => {
    expect(profilePath({ HOME: "/home/ada" })).toBe("/home/ada/.config/slipway/profiles.json");
    expect(profilePath({ HOME: "/home/ada", XDG_CONFIG_HOME: "/x" })).toBe("/x/slipway/profiles.json");
    expect(profilePath({ HOME: "/home/ada", XDG_CONFIG_HOME: "relative" })).toContain("/home/ada/.config");
  });
});

describe("commands of databases", () => {
  const address = { host: "db.example.com", port: 31432, username: "app", database: "app" };

  it("have the password in the environment alone", () => {
    const programs = {
      postgresql: "psql",
      mariadb: "mariadb",
      valkey: "valkey-cli",
      clickhouse: "clickhouse",
    };
    for (const [type, program] of Object.entries(programs)) {
      const command = clientCommand(type, address, "s3cret");
      expect(command.program).toBe(program);
      expect(Object.values(command.environment)).toEqual(["s3cret"]);
      expect(shown(command)).not.toContain("s3cret");
      expect(shown(command)).toMatch(/31432/);
    }
    expect(shown(clientCommand("postgresql", address))).toBe(
      "psql 'host=db.example.com port=31432 user=app dbname=app sslmode=require'",
    );
    expect(() => clientCommand("http", address)).toThrow("no database");
  });
});

describe("sessions of commands", () => {
  it("have an address, frames and an exit code", () => {
    const query = { command: ["sh", "-c", "a b"], tty: false };
    expect(execUrl("https://api.example.com/", "pshop", "pshop-1", query)).toBe(
      "wss://api.example.com/v1/project/pshop/instances/pshop-1/exec?command=sh&command=-c&command=a+b&stdin=true&tty=false",
    );
    expect([...frame(0, "hi")]).toEqual([0, 104, 105]);
    expect(exitCodeOf('{"status":"Success"}')).toBe(0);
    const causes = [{ reason: "ExitCode", message: "7" }];
    expect(exitCodeOf(JSON.stringify({ status: "Failure", details: { causes } }))).toBe(7);
    expect(exitCodeOf('{"status":"Failure"}')).toBe(126);
  });
});

describe("amounts", () => {
  it("are exact, with their fractions of a cent", () => {
    expect(formatCents("2234.35")).toBe("22.3435 BRL");
    expect(formatCents(7)).toBe("0.07 BRL");
    expect(formatCents("-2223")).toBe("-22.23 BRL");
    expect(formatCents("12345678901234567890.50")).toBe("123456789012345678.905 BRL");
  });
});

describe("failures", () => {
  it("say what to do", () => {
    const denied = new SlipwayError(403, "PERMISSION_DENIED", "insufficient", {
      details: { required: ["x on y"] },
    });
    expect(describeFailure(denied).message).toContain("required: x on y");
    expect(describeFailure(new SlipwayError(401, "CREDENTIAL_INVALID", "no")).message).toContain(
      "slipway login",
    );
    const lost = new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
    expect(describeFailure(lost).message).toContain("ECONNREFUSED");
  });
});

describe("completion", () => {
  it("has commands, subcommands and options for each shell", () => {
    const options = [{ flags: "-f, --follow", description: "" }];
    const all = [
      { name: "logs", summary: "Print it's lines", options },
      { name: "env", summary: "Variables", subcommands: [{ name: "list", summary: "List" }] },
    ];
    for (const shell of SHELLS) {
      const script = completionScript(shell, all);
      for (const word of ["logs", "env", "list", "follow"]) {
        expect(script).toContain(word);
      }
    }
  });
});
