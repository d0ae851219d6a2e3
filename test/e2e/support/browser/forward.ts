import { connect, createServer } from "node:net";
import { pipeline } from "node:stream";

/** Leads connections to a port of this network namespace out of it, through a Unix socket. Run by `alone.sh`. */

const { SLIPWAY_BROWSER_PORT: port, SLIPWAY_BROWSER_SOCKET: socket = "" } = process.env;
createServer((inside) => {
  const outside = connect(socket);
  pipeline(inside, outside, inside, () => undefined);
}).listen(Number(port), "127.0.0.1");
