import { expect, test } from "vitest";
import type { AdminContext } from "./context.ts";
import { runAdminCommand } from "./program.ts";

/** Neither command needs anything of the platform. */
const context = {} as AdminContext;

test("the help lists every group of commands, the one that runs on a person's machine, too", async () => {
  const { exitCode, stdout } = await runAdminCommand(["--help"], context);
  const listed = [...stdout.matchAll(/^ {2}([a-z][a-z-]+)/gm)].map(([, name]) => name);
  expect(listed).toEqual(
    expect.arrayContaining([
      "organization",
      "api-key",
      "user-token",
      "member",
      "domain",
      "capacity",
      "invoice",
      "billing",
      "platform",
    ]),
  );
  expect(exitCode).toBe(0);
});

test("commands of recovery are refused here, with the way to run them", async () => {
  const { exitCode, stderr } = await runAdminCommand(["platform", "backup", "--to", "a.age"], context);
  expect(stderr).toContain("npm run --silent slipway -- admin platform");
  expect(exitCode).toBe(1);
});
