import { run } from "../../../hack/lib/exec.ts";

/** A machine of its own, as far as addresses go: a network namespace that reaches this one alone. */
export interface NetworkNamespace {
  /** Whether a TCP connection is accepted within 3 s, and data is received on it or it stays open. */
  reaches(host: string, port: number): Promise<boolean>;
  remove(): Promise<void>;
}

/**
 * Makes a network namespace with one address, and a link to this machine's.
 * @param name of the namespace and of the link here; up to 14 characters
 * @param gateway address of this end of the link, with its prefix
 */
export async function networkNamespace(
  name: string,
  gateway: string,
  address: string,
): Promise<NetworkNamespace> {
  const ip = (...args: string[]) => run("ip", args);
  const inside = (...args: string[]) => ip("-n", name, ...args);
  const [here = "", bits = ""] = gateway.split("/");
  const remove = async (): Promise<void> => {
    // The link goes with either of its ends.
    await ip("netns", "delete", name).catch(() => undefined);
    await ip("link", "delete", name).catch(() => undefined);
  };
  await remove();
  await ip("netns", "add", name);
  try {
    await ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name);
    await ip("address", "add", gateway, "dev", name);
    await ip("link", "set", name, "up");
    await inside("address", "add", `${address}/${bits}`, "dev", "eth0");
    await inside("link", "set", "lo", "up");
    await inside("link", "set", "eth0", "up");
    await inside("route", "add", "default", "via", here);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    reaches: (host, port) =>
      run("ip", [
        "netns",
        "exec",
        name,
        "timeout",
        "3",
        "bash",
        "-c",
        `exec 3<>/dev/tcp/${host}/${port}`,
      ]).then(
        () => true,
        () => false,
      ),
    remove,
  };
}
