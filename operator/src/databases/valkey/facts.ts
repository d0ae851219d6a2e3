/** What a server says of itself: its part of `INFO`. Pure. */

/** Priority of a replica that Sentinels may promote, which is what a server has by itself. */
export const DEFAULT_PRIORITY = 100;

/** An instance's own word. */
export interface Facts {
  version: string;
  role: "primary" | "replica";
  /** Replicas that follow a primary and are up to date with it but for what is on its way. */
  followers: number;
  /** Address that a replica follows, as it was told. */
  follows?: string;
  /** A replica has its primary's data and gets what is new. */
  linked: boolean;
  /** Of a replica: 0 is never promoted by Sentinels. */
  priority?: number;
}

/** @param text of `INFO server replication`; undefined when it is none */
export function parseFacts(text: string): Facts | undefined {
  const fields = new Map(
    text.split(/\r?\n/).flatMap((line) => {
      const at = line.indexOf(":");
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as const] : [];
    }),
  );
  const version = fields.get("valkey_version");
  const role = fields.get("role");
  if (version === undefined || (role !== "master" && role !== "slave")) {
    return undefined;
  }
  if (role === "slave") {
    const linked = fields.get("master_link_status") === "up";
    const priority = Number(fields.get("slave_priority") ?? DEFAULT_PRIORITY);
    return { version, role: "replica", followers: 0, follows: fields.get("master_host"), linked, priority };
  }
  const followers = [...fields].filter(
    ([name, value]) => /^slave[0-9]+$/.test(name) && value.includes("state=online"),
  ).length;
  return { version, role: "primary", followers, linked: true };
}
