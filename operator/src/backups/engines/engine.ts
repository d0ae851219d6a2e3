/** What backing up a database means for each engine: shell scripts for a container of the engine's image. */

import type { BackupEngine } from "@slipway/crds";
import { readScript, renderScript } from "../../databases/common/scripts.ts";
import { WORK, workFiles } from "../agent/protocol.ts";

export interface EngineScripts {
  readonly name: BackupEngine;
  /** What is counted, to check that a restore is complete. */
  readonly counts: "rows" | "keys";
  /** Port of the server, and of the Service that leads to the primary. */
  readonly port: number;
  /** Writes a dump of the whole database, as it is at one moment, into the pipe, and what is in it into `contents`. */
  readonly dump: string;
  /** Loads a dump from the pipe into the database, which is new, or has what a killed try has left. */
  readonly load: string;
  /** Starts a server of its own in `SCRATCH`, loads a dump from the pipe into it and counts its content. */
  readonly verify: string;
  /**
   * Variables from keys of the credentials Secret, for `dump` and `load`. Never the user's password for `dump`: the user may
   * have another one by now, which nobody else knows.
   */
  readonly credentials: Readonly<Record<string, string>>;
  /** The same for `dump` alone, in place of those. */
  readonly dumpCredentials?: Readonly<Record<string, string>>;
  /** Plain variables for `dump` alone, in place of those and of `variables`. */
  readonly dumpVariables?: Readonly<Record<string, string>>;
  /** Whether `load` needs the database's own certificate and key, beside its authority. */
  readonly ownCertificate?: true;
  /** Whether a server that loads a dump holds all of it in memory. */
  readonly inMemory?: true;
  /** Plain variables for `dump` and `load`. */
  readonly variables: Readonly<Record<string, string>>;
  /** Variable that names the host. */
  readonly host: string;
}

/** The authority of the database's certificate. */
export const CA_FILE = "/etc/slipway/tls/ca.crt";
/** An empty folder for a server that is started to try a backup. */
export const SCRATCH = "/scratch";

type Work = "dump" | "load" | "verify";
type Values = Partial<Record<Work, Readonly<Record<string, string>>>>;

const shared = {
  DATA: `${WORK}/${workFiles.data}`,
  CONTENTS: `${WORK}/${workFiles.contents}`,
  EXIT: `${WORK}/${workFiles.exit}`,
  /** A file of the script's own. */
  OWN: `${WORK}/own`,
  CA_FILE,
  SCRATCH,
};

/** The programs of an engine, from the files `scripts/<engine>/{dump,load,verify}.sh`. @param values of its own placeholders */
export function engineScripts(engine: BackupEngine, values: Values = {}): Pick<EngineScripts, Work> {
  const render = (work: Work) => {
    const file = new URL(`scripts/${engine}/${work}.sh`, import.meta.url);
    return renderScript(readScript(file), { ...shared, ...values[work] });
  };
  return { dump: render("dump"), load: render("load"), verify: render("verify") };
}
