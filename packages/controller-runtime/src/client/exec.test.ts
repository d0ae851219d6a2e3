import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { KubeClient } from "./client.ts";
import { KubeError } from "./errors.ts";

let stop: (() => Promise<void>) | undefined;
afterEach(async () => {
  await stop?.();
  stop = undefined;
});

/** An apiserver that plays a container's part on each connection. */
async function serve(play: (socket: WebSocket, query: URLSearchParams) => void): Promise<KubeClient> {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket, request) =>
    play(socket, new URL(request.url ?? "", "http://test").searchParams),
  );
  return listen(server, () => sockets.close());
}

async function listen(server: Server, close: () => void): Promise<KubeClient> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = KubeClient.forUrl(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  stop = async () => {
    close();
    server.closeAllConnections();
    await Promise.all([client.close(), new Promise((resolve) => server.close(resolve))]);
  };
  return client;
}

const pod = { namespace: "alpha", name: "shop-0" };
const message = (channel: number, text: string) => Buffer.concat([Buffer.of(channel), Buffer.from(text)]);
const end = (code: number) =>
  message(
    3,
    JSON.stringify(
      code === 0
        ? { status: "Success" }
        : { status: "Failure", details: { causes: [{ reason: "ExitCode", message: String(code) }] } },
    ),
  );

describe("a command in a container", () => {
  test("gets its words and its input, and gives its output and exit code", async () => {
    let words: string[] = [];
    const client = await serve((socket, query) => {
      words = query.getAll("command");
      let input = "";
      socket.on("message", (data) => {
        const bytes = data as Buffer;
        if (bytes[0] === 0) {
          input += bytes.subarray(1).toString();
        }
        if (bytes[0] !== 255) {
          return;
        }
        socket.send(message(1, `read ${input}`));
        socket.send(message(2, "a warning"));
        socket.send(end(3));
        socket.close();
      });
    });
    const command = ["psql", "--command", "select 1 & 2"];
    const result = await client.podExec(pod, { container: "database", command, stdin: "select 1;" });
    expect(result).toEqual({ exitCode: 3, stdout: "read select 1;", stderr: "a warning" });
    expect(words).toEqual(command);
  });

  test("reads a stream, and gives its output as it is consumed, in order", async () => {
    const client = await serve((socket) => {
      socket.on("message", (data) => {
        const bytes = data as Buffer;
        if (bytes[0] === 255) {
          socket.send(end(0));
          socket.close();
        } else {
          socket.send(message(1, bytes.subarray(1).toString().toUpperCase()));
        }
      });
    });
    async function* stdin() {
      for (const word of ["one ", "two ", "three"]) {
        yield Buffer.from(word);
      }
    }
    const seen: string[] = [];
    const onStdout = async (chunk: Buffer) => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      seen.push(chunk.toString());
    };
    const options = { container: "database", command: ["cat"], stdin: stdin(), onStdout };
    expect(await client.podExec(pod, options)).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    expect(seen).toEqual(["ONE ", "TWO ", "THREE"]);
  });

  test("fails when its input cannot be read, and when its output cannot be consumed", async () => {
    const client = await serve((socket) => socket.send(message(1, "text")));
    const command = ["cat"];
    // biome-ignore lint/correctness/useYield: it fails before its first chunk.
    async function* stdin() {
      throw new Error("no input");
    }
    await expect(client.podExec(pod, { container: "database", command, stdin: stdin() })).rejects.toThrow(
      "no input",
    );
    const onStdout = () => Promise.reject(new Error("the disk is full"));
    await expect(client.podExec(pod, { container: "database", command, onStdout })).rejects.toThrow(
      "the disk is full",
    );
  });

  test("succeeds with 0", async () => {
    const client = await serve((socket) => {
      socket.send(end(0));
      socket.close();
    });
    expect((await client.podExec(pod, { container: "database", command: ["true"] })).exitCode).toBe(0);
  });

  test("that is refused fails with the apiserver's own error", async () => {
    const server = createServer();
    server.on("upgrade", (_request, socket) => {
      const body = JSON.stringify({ kind: "Status", reason: "NotFound", message: "no such pod", code: 404 });
      socket.end(`HTTP/1.1 404 Not Found\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    });
    const client = await listen(server, () => {});
    const error: unknown = await client
      .podExec(pod, { container: "database", command: ["true"] })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(KubeError);
    expect(error).toMatchObject({ status: 404, reason: "NotFound" });
  });

  test("whose connection breaks has no known end", async () => {
    const client = await serve((socket) => socket.terminate());
    await expect(client.podExec(pod, { container: "database", command: ["true"] })).rejects.toThrow(
      "ended before the command",
    );
  });

  test("that runs for too long, or that nobody waits for any more, is abandoned", async () => {
    const client = await serve(() => {});
    const options = { container: "database", command: ["sleep", "60"] };
    await expect(client.podExec(pod, { ...options, timeoutMs: 200 })).rejects.toThrow("no end within");
    const signal = AbortSignal.timeout(100);
    await expect(client.podExec(pod, { ...options, signal })).rejects.toThrow(/abort|timeout/i);
  });
});

describe("the socket of a command", () => {
  const options = {
    container: "app",
    command: ["sh", "-c", "a b"],
    stdin: true,
    tty: true,
    maxPayload: 64 * 1024,
  };

  test("asks for the streams that it has, and holds back what comes before anybody listens", async () => {
    let query = "";
    const client = await serve((socket, asked) => {
      query = asked.toString();
      socket.send(message(1, "first"));
      socket.send(end(0));
      socket.close();
    });
    const socket = await client.podExecStream(pod, options);
    expect(query).toBe(
      "container=app&stdin=true&stdout=true&stderr=false&tty=true&command=sh&command=-c&command=a+b",
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    const seen: string[] = [];
    socket.on("message", (data) => seen.push((data as Buffer).subarray(1).toString()));
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    expect(seen).toEqual(["first", '{"status":"Success"}']);
  });

  test("is refused with the apiserver's own error, of which little is read", async () => {
    const server = createServer();
    server.on("upgrade", (_request, socket) => {
      socket.on("error", () => undefined);
      const body = JSON.stringify({ kind: "Status", reason: "Forbidden", message: "no", code: 403 });
      socket.write(`HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\n${body}${" ".repeat(1_000_000)}`);
    });
    const client = await listen(server, () => {});
    await expect(client.podExecStream(pod, options)).rejects.toMatchObject({ status: 403 });
  });

  test("is not waited for longer than it may take, nor once nobody wants it", async () => {
    const server = createServer();
    const silent: Duplex[] = [];
    server.on("upgrade", (_request, socket) => silent.push(socket.on("error", () => undefined)));
    const client = await listen(server, () => {
      for (const socket of silent) {
        socket.destroy();
      }
    });
    await expect(client.podExecStream(pod, { ...options, timeoutMs: 100 })).rejects.toMatchObject({
      status: 0,
    });
    const signal = AbortSignal.timeout(100);
    await expect(client.podExecStream(pod, { ...options, signal })).rejects.toThrow(/abort|timeout/i);
  });

  test("breaks for a message that is too large", async () => {
    const client = await serve((socket) => socket.send(Buffer.alloc(64 * 1024 + 1)));
    const socket = await client.podExecStream(pod, options);
    const errors: Error[] = [];
    socket.on("error", (error) => errors.push(error));
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    expect(errors).toHaveLength(1);
  });
});
