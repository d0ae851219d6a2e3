import { type AddressInfo, connect, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { AdminResult } from "./program.ts";
import { adminServer, type RunCommand } from "./server.ts";

let server: Server | undefined;
afterEach(() => new Promise((resolve) => server?.close(resolve)));

async function start(run: RunCommand): Promise<number> {
  server = adminServer(run, () => {});
  await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** All that the server answers to some bytes; empty when it ends the connection without an answer. */
function send(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
  });
}
const runCommand = async (port: number, ...args: string[]) =>
  JSON.parse(await send(port, `${JSON.stringify({ args })}\n`)) as AdminResult;

describe("the admin server", () => {
  it("answers a hundred concurrent calls, running few of them at the same time", async () => {
    let running = 0;
    let most = 0;
    const { promise: full, resolve: isFull } = Promise.withResolvers<void>();
    const port = await start(async ([word]) => {
      running += 1;
      most = Math.max(most, running);
      if (running === 16) {
        isFull();
      }
      await full;
      running -= 1;
      return { exitCode: 0, stdout: `${word}\n`, stderr: "" };
    });
    const words = Array.from({ length: 100 }, (_, index) => `word-${index}`);
    const answers = await Promise.all(words.map((word) => runCommand(port, word)));
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(words);
    expect(most).toBe(16);
  });

  it("passes on what a command printed, and says that one failed", async () => {
    const port = await start(async ([word]) => {
      if (word === "fails") {
        throw new Error("the reason");
      }
      return { exitCode: 2, stdout: "out\n", stderr: "wärn\n" };
    });
    expect(await runCommand(port, "warns")).toEqual({ exitCode: 2, stdout: "out\n", stderr: "wärn\n" });
    expect(await runCommand(port, "fails")).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "slipway: failed: the reason\n",
    });
  });

  it("ends a connection that sends no command, and runs nothing", async () => {
    let ran = 0;
    const port = await start(async () => {
      ran += 1;
      return { exitCode: 0, stdout: "", stderr: "" };
    });
    const requests = ["GET / HTTP/1.1\r\n\r\n", '{"args":"x"}\n', '{"args":[1]}\n', "x".repeat(70_000)];
    for (const request of requests) {
      expect(await send(port, request)).toBe("");
    }
    expect(ran).toBe(0);
  });

  it("keeps nothing of what follows the request, and ends the connection when it is long", async () => {
    const { promise: received, resolve: isReceived } = Promise.withResolvers<void>();
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    const port = await start(async () => {
      isReceived();
      await done;
      return { exitCode: 0, stdout: "", stderr: "" };
    });
    const socket = connect(port, "127.0.0.1", () => socket.write('{"args":["waits"]}\n'));
    socket.on("error", () => {});
    const ended = new Promise((resolve) => socket.once("close", resolve));
    await received;
    for (let sent = 0; sent < 4 && !socket.destroyed; sent += 1) {
      socket.write(Buffer.alloc(64 * 1024));
    }
    await ended;
    finish();
  });

  it("takes the first line alone for the request", async () => {
    const port = await start(async (words) => ({ exitCode: 0, stdout: words.join(" "), stderr: "" }));
    const answer = await send(port, '{"args":["one"]}\n{"args":["two"]}\n');
    expect(JSON.parse(answer)).toMatchObject({ stdout: "one" });
  });
});
