import { once } from "node:events";
import { type AddressInfo, createServer, type Server as TcpServer } from "node:net";
import { afterEach, expect, test } from "vitest";
import { valkeyNative } from "./valkey.ts";
import { sampleValkey } from "./valkey-sampler.ts";

/** Against a server that answers with the bytes that Valkey answers with. */

let server: TcpServer | undefined;
let heard = "";

afterEach(() => {
  server?.close();
  heard = "";
});

/** @param chunks of the answer; undefined hangs up after them */
async function serve(...chunks: (string | undefined)[]): Promise<number> {
  server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", async (data) => {
      heard += data.toString();
      for (const chunk of chunks) {
        if (chunk === undefined) {
          socket.end();
        } else {
          socket.write(chunk);
        }
        await new Promise((done) => setTimeout(done, 20));
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const info = [
  "# Server",
  "run_id:4f0c2b",
  "server_time_usec:1767225600250000",
  "executable:/usr/bin/valkey-server",
  "uptime_in_seconds:60",
  "# Memory",
  "used_memory:1000",
  "# Replication",
  "role:master",
  "slave0:ip=10.0.0.2,port=6379,state=online,offset=420,lag=1,type=replica",
  "# Keyspace",
  "db0:keys=12,expires=4,avg_ttl=1000",
  "",
].join("\r\n");
const bulk = `$${info.length}\r\n${info}\r\n`;

const sample = (port: number, signal = new AbortController().signal) =>
  sampleValkey(
    {
      host: "127.0.0.1",
      port,
      ca: undefined,
      serverName: "x",
      user: "monitor",
      password: "pass",
      container: "c1",
    },
    signal,
  );

test("INFO is read as the monitoring account, however it comes in", async () => {
  const reading = await sample(await serve("+OK\r", `\n${bulk.slice(0, 40)}`, bulk.slice(40)));
  expect(heard.startsWith("*3\r\n$4\r\nAUTH\r\n$7\r\nmonitor\r\n$4\r\npass\r\n*8\r\n$4\r\nINFO\r\n")).toBe(
    true,
  );
  expect(reading).toEqual({
    raw: {
      process: "c1/4f0c2b",
      clockMs: 1_767_225_600_250,
      facts: {
        uptime_in_seconds: "60",
        used_memory: "1000",
        role: "master",
        slave0: "state=online,offset=420,lag=1,type=replica",
        db0: "keys=12,expires=4,avg_ttl=1000",
      },
    },
    incomplete: false,
  });
  const native = valkeyNative(reading.raw, undefined, {
    replicas: 1,
    profile: "key_value",
    persistent: false,
  });
  expect(native.reliability.replication).toMatchObject({
    status: "ok",
    replicas_available: 1,
    lag_seconds: 1,
  });
});

test.each<[string, (string | undefined)[], string]>([
  ["that refuses the account", ["-WRONGPASS invalid username-password pair\r\n"], "refused"],
  ["that refuses the command", ["+OK\r\n-NOPERM no permission\r\n"], "refused"],
  ["that hangs up", ["+OK\r\n$1000\r\nrun_id", undefined], "hung up"],
  ["that reports nothing", ["+OK\r\n$0\r\n\r\n"], "no statistics"],
])("a server %s is not sampled", async (_, chunks, message) => {
  await expect(sample(await serve(...chunks))).rejects.toThrow(message);
});

test("a server that does not answer is abandoned", async () => {
  const port = await serve("+OK\r\n");
  await expect(sample(port, AbortSignal.timeout(100))).rejects.toThrow("abandoned");
});
