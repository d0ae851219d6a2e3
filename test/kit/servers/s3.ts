import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { end, start } from "../../../hack/cluster/apiserver.ts";
import { ensureBinary } from "../../../hack/cluster/binaries.ts";
import { ensureAuthority, ensureCertificate } from "../../../hack/cluster/certificates.ts";
import type { Argv } from "../../../hack/cluster/control-plane.ts";
import { freePorts } from "../../../hack/lib/ports.ts";
import { GiveUp, waitFor } from "../../../hack/lib/wait.ts";

/** A store with one bucket. */
export interface TestS3 {
  /** `http://HOST:PORT`, or https. */
  endpoint: string;
  host: string;
  port: number;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Authority of its certificate, as PEM; empty without TLS. */
  ca: string;
  /** Keys of all objects that are whole. */
  objects(): Promise<string[]>;
  /** Files of uploads that are under way. */
  unfinished(): Promise<string[]>;
  /** Ends it, and removes all that it has. */
  stop(): Promise<void>;
}

export interface TestS3Options {
  /** Address that it listens on; the port is a free one of 127.0.0.1. */
  host?: string;
  tls?: boolean;
}

const BUCKET = "backups";
/** Where versitygw keeps what is no object yet. */
const UNFINISHED = ".sgwtmp";

/**
 * Starts an S3 server (versitygw) that checks signatures (SigV4, in headers and URLs), with keys of its own, on a folder that is
 * removed with it. Builds the binary when the cache does not have it. It ends with this process, however that ends.
 */
export async function startS3({ host = "127.0.0.1", tls = false }: TestS3Options = {}): Promise<TestS3> {
  const binary = await ensureBinary("versitygw");
  const dir = await mkdtemp(join(tmpdir(), "slipway-s3-"));
  const [data, sidecar] = [join(dir, "data"), join(dir, "sidecar")];
  const bucket = join(data, BUCKET);
  await mkdir(bucket, { recursive: true });
  await mkdir(sidecar);
  const [port = 0] = await freePorts(1);
  const keys = {
    accessKeyId: `AK${randomBytes(8).toString("hex")}`,
    secretAccessKey: randomBytes(20).toString("hex"),
  };
  const argv: Argv = ["versitygw", "--port", `${host}:${port}`, "--health", "/health", "--quiet"];
  let ca = "";
  if (tls) {
    const authority = await ensureAuthority(dir, "s3-ca");
    const server = await ensureCertificate(dir, "server", authority, {
      commonName: "s3",
      altNames: [`IP:${host}`],
    });
    argv.push("--cert", server.cert, "--key", server.key);
    ca = await readFile(authority.cert, "utf8");
  }
  // Not every file system takes the attributes that it would keep beside the files.
  argv.push("posix", "--sidecar", sidecar, data);
  const child = start(binary, dir, argv, 1, {
    ROOT_ACCESS_KEY_ID: keys.accessKeyId,
    ROOT_SECRET_ACCESS_KEY: keys.secretAccessKey,
  });
  const stop = async () => {
    await end(child, "SIGKILL");
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    await waitFor("versitygw", 60_000, async () => {
      if (child.exitCode !== null) {
        throw new GiveUp(await readFile(join(dir, "versitygw.log"), "utf8"));
      }
      return accepts(host, port);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...keys,
    endpoint: `${tls ? "https" : "http"}://${host}:${port}`,
    host,
    port,
    bucket: BUCKET,
    ca,
    objects: async () => (await filesBelow(bucket)).filter((file) => !file.startsWith(UNFINISHED)).sort(),
    unfinished: async () => (await filesBelow(bucket)).filter((file) => file.startsWith(UNFINISHED)).sort(),
    stop,
  };
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

function accepts(host: string, port: number): Promise<true> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, host, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", reject);
  });
}
