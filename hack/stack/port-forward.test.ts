import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { NotReached, requestPod } from "./port-forward.ts";

/** What the kubelet sends first on the channels of a port's data and errors: the port's number. */
const PORT = [Buffer.of(0, 0x8f, 0x1f), Buffer.of(1, 0x8f, 0x1f)];

let kubelet: WebSocketServer;
afterEach(() => kubelet.close());

/** A request to a kubelet that does this with each connection. */
async function ask(behave: (socket: WebSocket) => void): Promise<string> {
  kubelet = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  kubelet.on("connection", (socket) => {
    for (const frame of PORT) {
      socket.send(frame);
    }
    behave(socket);
  });
  await once(kubelet, "listening");
  const server = `http://127.0.0.1:${(kubelet.address() as AddressInfo).port}`;
  return requestPod(
    { server, headers: {}, tls: {} },
    { namespace: "a", pod: "b", port: 8079 },
    "ask\n",
    5_000,
  );
}

const answer = (text: string) => Buffer.concat([Buffer.of(0), Buffer.from(text)]);

it("an answer is complete with its line's end, whenever the connection ends", async () => {
  const answered = ask((socket) => {
    socket.send(answer('{"said":'));
    setTimeout(() => socket.send(answer('"all"}\n')), 20);
  });
  expect(await answered).toBe('{"said":"all"}\n');
});

it("half an answer is none", async () => {
  const cut = ask((socket) => socket.send(answer('{"said":'), () => socket.close()));
  await expect(cut).rejects.toThrow("the connection ended within the answer");
});

it("what the kubelet cannot reach may be requested again", async () => {
  const refused = ask((socket) => socket.send(Buffer.concat([Buffer.of(1), Buffer.from("nothing listens")])));
  await expect(refused).rejects.toBeInstanceOf(NotReached);
});
