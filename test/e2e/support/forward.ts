import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PortForward } from "@kubernetes/client-node";
import { config } from "./cluster.ts";

/** An address of this machine. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Opens a connection to a port of the cluster, with what the socket sends and receives. */
type Forward = (socket: Socket) => ReturnType<PortForward["portForward"]>;

const forwarder = new PortForward(config);
const addresses = new Map<string, Promise<Address>>();

/**
 * A port of a pod that this machine can connect to, through the apiserver, on every kind of cluster: addresses of pods and Services are
 * routed from here on the embedded cluster alone. The pod is found by its name for each connection, so that it may be replaced.
 */
export const podAddress = (namespace: string, pod: string, port: number): Promise<Address> =>
  forwarded(`pod/${namespace}/${pod}:${port}`, (socket) =>
    forwarder.portForward(namespace, pod, [port], socket, null, socket),
  );

/** The same for a ready pod of a Service. @param port of the pod */
export const serviceAddress = (namespace: string, service: string, port: number): Promise<Address> =>
  forwarded(`service/${namespace}/${service}:${port}`, (socket) =>
    forwarder.portForwardService(namespace, service, [port], socket, null, socket),
  );

function forwarded(key: string, forward: Forward): Promise<Address> {
  const address = addresses.get(key) ?? listen(forward);
  addresses.set(key, address);
  return address;
}

async function listen(forward: Forward): Promise<Address> {
  // What the client sends first waits in the socket until it is forwarded.
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    connect(socket, forward).catch(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // It ends with the tests' process.
  server.unref();
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

async function connect(socket: Socket, forward: Forward): Promise<void> {
  const opened = await forward(socket);
  // A function where lost connections are to be opened again, which is not requested here.
  const connection = typeof opened === "function" ? opened() : opened;
  // The client may have left meanwhile.
  if (!connection || socket.destroyed) {
    connection?.close();
    socket.destroy();
    return;
  }
  connection.on("close", () => socket.destroy());
  socket.on("close", () => connection.close());
  socket.resume();
}
