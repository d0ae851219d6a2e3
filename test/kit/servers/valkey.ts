import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { images } from "../../../hack/images/index.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { type InsideServer, startInside } from "./inside-server.ts";

/** It keeps no data: started again it is empty. */
export interface TestValkey extends InsideServer {
  /** Connection URL with the password. */
  url: string;
  /** Port on 127.0.0.1. */
  port: number;
}

/**
 * Starts the stack's own Valkey image on a random port of 127.0.0.1, with a password and without persistence. Builds the
 * image where it is not in the cache; needs root.
 */
export async function startValkey(): Promise<TestValkey> {
  const image = images.find(({ name }) => name === "valkey");
  if (!image) {
    throw new Error("there is no image of Valkey");
  }
  const password = "a-password";
  const [port = 0] = await freePorts(1);
  const server = await startInside("Valkey", await image.build(), async ({ folder }) => {
    await writeFile(join(folder, "auth.conf"), `requirepass ${password}\n`);
    const settings = ["--bind", "127.0.0.1", "--port", String(port), "--save", "", "--dir", "/tmp"];
    return {
      command: ["/usr/bin/valkey-server", "/media/auth.conf", ...settings],
      uid: 999,
      answers: () => accepts(port),
      timeoutMs: 60_000,
    };
  });
  return { ...server, url: `valkey://:${password}@127.0.0.1:${port}`, port };
}

function accepts(port: number): Promise<true> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", reject);
  });
}
