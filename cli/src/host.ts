import { setTimeout as sleep } from "node:timers/promises";
import type { Host } from "./run.ts";

/** Signals end a child as they end this process: 128 and the number, as shells have it. */
const SIGNALED_EXIT = 128;

/** This process. */
export const processHost: Host = {
  environment: process.env,
  streams: { out: (text) => void process.stdout.write(text), err: (text) => void process.stderr.write(text) },
  isOutputTerminal: process.stdout.isTTY === true,
  input: {
    isTerminal: process.stdin.isTTY === true && process.stdout.isTTY === true,
    readAll: async () => {
      let text = "";
      process.stdin.setEncoding("utf8");
      for await (const chunk of process.stdin) {
        text += chunk as string;
      }
      return text;
    },
  },
  ask: async (question) => {
    const { createInterface } = await import("node:readline/promises");
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await terminal.question(question);
    } finally {
      terminal.close();
    }
  },
  spawn: async (command, args, environment = {}) => {
    const { spawn } = await import("node:child_process");
    const child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...environment } });
    return new Promise((resolve, reject) => {
      child.once("error", (error: NodeJS.ErrnoException) =>
        error.code === "ENOENT" ? resolve(undefined) : reject(error),
      );
      child.once("close", (code) => resolve(code ?? SIGNALED_EXIT));
    });
  },
  sleep: (ms) => sleep(ms),
  now: () => Date.now(),
};
