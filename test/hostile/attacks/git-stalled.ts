import { machineProcess } from "../../e2e/support/process.ts";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { connectedRepository } from "./git-lists.ts";

export const gitStalled: Attack = {
  name: "git-stalled",
  about: "64 clients of two organizations that list over connections whose Git server has stopped answering",
  seconds: 15,
  // The others' repositories are on the same server.
  isAlone: true,
  expected: ["200", "429", "502", "503", "504", "no answer"],
  async prepare({ url, organizations }) {
    const made = await Promise.all(organizations.map((one) => connectedRepository("git-stalled", one)));
    const requests = made.flatMap(({ paths, headers }) => paths.map((path) => ({ path, headers })));
    return {
      async run(signal) {
        const server = await machineProcess("/gitea --config /mnt/conf/app.ini web");
        process.kill(server, "SIGSTOP");
        try {
          const next = (index: number) => ({
            method: "GET" as const,
            path: "",
            ...requests[index % requests.length],
          });
          return await calls({ url, concurrency: 64, count: 5_000, restMs: 20, next }, signal);
        } finally {
          process.kill(server, "SIGCONT");
        }
      },
      clean: async () => {
        await Promise.all(made.map(({ repository }) => repository.remove()));
      },
    };
  },
};
