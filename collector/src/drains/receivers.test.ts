import { afterEach, describe, expect, test } from "vitest";
import { outgoing } from "../../../test/kit/drains/lines.ts";
import {
  messageText,
  type OtlpAnswer,
  type OtlpRequest,
  type SyslogBehaviour,
  startOtlpReceiver,
  startSyslogReceiver,
  textsOf,
} from "../../../test/kit/drains/receivers.ts";
import { OtlpReceiver } from "./otlp-receiver.ts";
import { SyslogReceiver } from "./syslog-receiver.ts";

const open: { close: () => unknown }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
});

const lines = [outgoing({ text: "one", offset: "1" }), outgoing({ text: "two\nlines", offset: "2" })];
const loopback = async () => [{ address: "127.0.0.1", family: 4 }];
/** For receivers that do answer: only what fails takes so long. */
const soon = () => AbortSignal.timeout(30_000);

describe("OTLP", () => {
  async function started(
    answer?: (request: OtlpRequest) => OtlpAnswer | undefined,
    allowed = true,
    trusted = true,
  ) {
    const server = await startOtlpReceiver(answer);
    const receiver = new OtlpReceiver(
      `${server.url}/tenant`,
      { headers: { Authorization: "Bearer secret" }, tls: trusted ? { ca: server.ca } : {} },
      // As its name server answers.
      { allowedHosts: new Set(allowed ? [server.host] : []), ...(allowed ? {} : { resolve: loopback }) },
    );
    open.push(server, receiver);
    return { server, receiver };
  }

  // Shows: docs/log-drains.md#otlp: `POST <endpoint>/v1/logs`, compressed with gzip
  test("posts lines with the drain's headers, as compressed JSON", async () => {
    const { server, receiver } = await started();
    expect(await receiver.send(lines, soon())).toEqual({ refused: 0 });
    const [request] = server.requests;
    expect([request?.path, server.texts]).toEqual(["/tenant/v1/logs", ["one", "two\nlines"]]);
    expect(request?.headers).toMatchObject({
      authorization: "Bearer secret",
      "content-type": "application/json",
      "content-encoding": "gzip",
    });
  });

  // Shows: docs/log-drains.md#otlp: 2xx | the lines are delivered
  // Shows: docs/log-drains.md#otlp: all lines of the batch count as refused
  test("counts what a receiver takes in part, or refuses for good", async () => {
    let answer: OtlpAnswer = { status: 200, body: '{"partialSuccess":{"rejectedLogRecords":"1"}}' };
    const { receiver } = await started(() => answer);
    expect(await receiver.send(lines, soon())).toEqual({ refused: 1 });
    answer = { status: 400 };
    expect(await receiver.send(lines, soon())).toEqual({ refused: 2 });
    answer = { status: 200, body: '{"partialSuccess":{"rejectedLogRecords":"99"}}' };
    expect(await receiver.send(lines, soon())).toEqual({ refused: 2 });
  });

  // Shows: docs/log-drains.md#otlp: 413 | the batch is halved
  test("halves what is too large for a receiver, a few times", async () => {
    const many = Array.from({ length: 64 }, (_, index) => outgoing({ text: `line ${index}` }));
    const { server, receiver } = await started((request) => ({
      status: textsOf(request).length > 16 ? 413 : 200,
    }));
    expect(await receiver.send(many, soon())).toEqual({ refused: 0 });
    expect(server.texts).toEqual(many.map(({ text }) => text));
    const never = await started(() => ({ status: 413 }));
    expect(await never.receiver.send(many, soon())).toEqual({ refused: 64 });
    expect(never.server.requests).toHaveLength(31);
  });

  // Shows: docs/log-drains.md#otlp: the batch is sent again, after `Retry-After`
  // Shows: docs/log-drains.md#otlp: any other | likewise
  test.each([
    [429, "ReceiverUnavailable"],
    [502, "ReceiverUnavailable"],
    [503, "ReceiverUnavailable"],
    [504, "ReceiverUnavailable"],
    [401, "ReceiverRefused"],
    [500, "ReceiverRefused"],
  ])("a receiver that answers %i is tried again, after its Retry-After", async (status, reason) => {
    const { receiver } = await started(() => ({ status, headers: { "retry-after": "7" } }));
    await expect(receiver.send(lines, soon())).rejects.toMatchObject({
      reason,
      retryAfterMs: 7_000,
      message: `the receiver answers with ${status}`,
    });
  });

  test("a receiver that wants another protocol is refused", async () => {
    const headers = { connection: "Upgrade", upgrade: "websocket" };
    const { receiver } = await started(() => ({ status: 101, headers }));
    await expect(receiver.send(lines, soon())).rejects.toMatchObject({ reason: "ReceiverRefused" });
  });

  // Shows: docs/log-drains.md#addresses: redirects are not followed
  test("a redirect is not followed", async () => {
    const { server, receiver } = await started(() => ({ status: 307, headers: { location: "/elsewhere" } }));
    await expect(receiver.send(lines, soon())).rejects.toMatchObject({ reason: "ReceiverRefused" });
    expect(server.requests.map(({ path }) => path)).toEqual(["/tenant/v1/logs"]);
  });

  test("an answer of any length is read to a bound", async () => {
    const { receiver } = await started(() => ({ status: 200, body: "x".repeat(5_000_000) }));
    expect(await receiver.send(lines, soon())).toEqual({ refused: 0 });
  });

  test("a receiver that does not answer fails in time", async () => {
    const { receiver } = await started(() => undefined);
    await expect(receiver.send(lines, AbortSignal.timeout(200))).rejects.toMatchObject({
      reason: "ReceiverUnavailable",
      message: "the receiver does not answer in time",
    });
  });

  test("an address that is not public gets no connection", async () => {
    const { server, receiver } = await started(undefined, false);
    await expect(receiver.send(lines, soon())).rejects.toMatchObject({ reason: "AddressRefused" });
    expect(server.connections()).toBe(0);
  });

  test("a certificate of an authority that is not trusted gets no request", async () => {
    const { server, receiver } = await started(undefined, true, false);
    await expect(receiver.send(lines, soon())).rejects.toMatchObject({ reason: "CertificateUntrusted" });
    expect(server.requests).toEqual([]);
  });
});

describe("syslog", () => {
  async function started(
    behaviour?: () => SyslogBehaviour,
    options: { trusted?: boolean; allowed?: boolean; host?: string } = {},
  ) {
    const { trusted = true, allowed = true, host = "localhost" } = options;
    const server = await startSyslogReceiver(behaviour);
    const receiver = new SyslogReceiver(
      { host, port: server.port },
      { headers: {}, tls: trusted ? { ca: server.ca } : {} },
      { allowedHosts: new Set(allowed ? [server.host] : []) },
    );
    open.push(server);
    return { server, receiver };
  }

  test("sends lines as frames over TLS, and ends once the receiver has read them all", async () => {
    const { server, receiver } = await started();
    const many = Array.from({ length: 2_000 }, (_, index) =>
      outgoing({ text: `${index} ${"x".repeat(200)}` }),
    );
    expect(await receiver.send(many, soon())).toEqual({ refused: 0 });
    expect(server.messages.map(messageText)).toEqual(many.map(({ text }) => text));
  });

  test("a line break does not end a message", async () => {
    const { server, receiver } = await started();
    await receiver.send(lines, soon());
    expect(server.messages.map(messageText)).toEqual(["one", "two#012lines"]);
  });

  // Shows: docs/log-drains.md#syslog: a receiver that ends the connection before the platform does gets the batch again
  test.each([2, 16_000])(
    "a receiver that ends the connection while lines of %i bytes come has none of them",
    async (bytes) => {
      const { receiver } = await started(() => "cut");
      const many = Array.from({ length: 1_000 }, () => outgoing({ text: "x".repeat(bytes) }));
      for (const some of [many.slice(0, 1), many]) {
        await expect(receiver.send(some, soon())).rejects.toMatchObject({ reason: "ReceiverUnavailable" });
      }
    },
  );

  test("a receiver that reads nothing fails in time", async () => {
    const { receiver } = await started(() => "hang");
    const failing = receiver.send(lines, AbortSignal.timeout(300));
    await expect(failing).rejects.toMatchObject({ reason: "ReceiverUnavailable" });
  });

  test("one that is away, or has an untrusted certificate, or a private address, fails", async () => {
    const untrusted = await started(undefined, { trusted: false });
    await expect(untrusted.receiver.send(lines, soon())).rejects.toMatchObject({
      reason: "CertificateUntrusted",
    });
    const refused = await started(undefined, { allowed: false, host: "127.0.0.1" });
    await expect(refused.receiver.send(lines, soon())).rejects.toMatchObject({ reason: "AddressRefused" });
    const away = await started();
    await away.server.close();
    await expect(away.receiver.send(lines, soon())).rejects.toMatchObject({ reason: "ReceiverUnavailable" });
    open.pop();
    expect(untrusted.server.messages).toEqual([]);
  });
});
