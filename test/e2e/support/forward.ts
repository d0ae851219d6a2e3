import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PortForward } from "@kubernetes/client-node";
import { config } from "./cluster.ts";

/** An address of this machine. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Ends on the errors of the forwarded port, such as a container that does not listen. */
type Forward = (
  socket: Socket,
) => Promise<{ close(): void; on(event: "close", listener: () => void): unknown }>;

const forwarder = new PortForward(config);
const addresses = new Map<string, Promise<Address>>();

/**
 * A port of a pod that this machine can connect to, through the apiserver, on every kind of cluster: addresses of pods and Services are
 * routed from here on the embedded cluster alone. The pod is found by its name for each connection, so that it may be replaced.
 */
export const podAddress = (namespace: string, pod: string, port: number): Promise<Address> =>
  addressOf(
    `pod/${namespace}/${pod}:${port}`,
    async (socket) =>
      forwarder.portForward(namespace, pod, [port], socket, null, socket) as ReturnType<Forward>,
  );

/** The same for a ready pod of a Service. @param port of the pod */
export const serviceAddress = (namespace: string, service: string, port: number): Promise<Address> =>
  addressOf(
    `service/${namespace}/${service}:${port}`,
    async (socket) =>
      forwarder.portForwardService(namespace, service, [port], socket, null, socket) as ReturnType<Forward>,
  );

function addressOf(key: string, forward: Forward): Promise<Address> {
  const address = addresses.get(key) ?? listen(forward);
  addresses.set(key, address);
  return address;
}

async function listen(forward: Forward): Promise<Address> {
  // What the client sends first waits in the socket until it is forwarded.
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    forward(socket).then(
      (connection) => {
        connection.on("close", () => socket.destroy());
        socket.on("close", () => connection.close());
        socket.resume();
      },
      () => socket.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // It ends with the tests' process.
  server.unref();
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}
