import { once } from "node:events";
import { createServer } from "node:net";

/** Ports of 127.0.0.1 that were free a moment ago; all different. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address && typeof address === "object") ports.push(address.port);
  }
  for (const server of servers) {
    server.close();
    await once(server, "close");
  }
  return ports;
}
