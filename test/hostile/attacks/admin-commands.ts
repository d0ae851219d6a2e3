import { admin } from "../../e2e/support/organization.ts";
import { isLong } from "../../kit/long.ts";
import { type Attack, Tally } from "../attack.ts";

const COUNT = isLong ? 100 : 20;

export const adminCommands: Attack = {
  name: "admin-commands",
  about: "20 administrators, or 100, that each make a key at the same time",
  // By then some of them are not finished.
  seconds: 8,
  isShort: true,
  expected: ["made"],
  prepare: async ({ organizations: [{ organization_id }] }) => ({
    async run() {
      const tally = new Tally();
      const grant = ["--grant", "project.read on project:p0000000000000000000"];
      const one = () =>
        admin<{ api_key: string }>("api-key", "create", "--organization", organization_id, ...grant).then(
          () => "made",
          (error: Error) => error.message.split("\n")[0] ?? "failed",
        );
      for (const answer of await Promise.all(Array.from({ length: COUNT }, one))) {
        tally.add(answer);
      }
      return tally.answers();
    },
  }),
};
