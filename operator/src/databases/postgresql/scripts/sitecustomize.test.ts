import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

/** Python itself loads the corrections, and a Patroni that has only what they touch. */

const KUBERNETES = `
from types import SimpleNamespace as Object

class KubernetesError(Exception):
    pass

class Api:
    def __init__(self, holder):
        self.holder = holder

    def read_namespaced_kind(self, name, namespace, _request_timeout):
        if self.holder == "unknown":
            raise TimeoutError("no answer")
        return Object(metadata=Object(annotations={"leader": self.holder}))

class Kubernetes:
    _LEADER = "leader"
    _name = "pod-0"
    _namespace = "ns"
    leader_path = "db-leader"

    def __init__(self, written, holder):
        self.written = written
        self._api = Api(holder)

    def attempt_to_acquire_leader(self):
        return self.written

    def update_leader(self, cluster, last_lsn, slots=None, failsafe=None):
        return self.written
`;

const POSTMASTER = `
import subprocess, sys

def pg_ctl_start(conn, cmdline, env):
    conn.send(subprocess.check_output([sys.executable, *cmdline], env=env, text=True))
`;

const CALL_OF_LOCK = `
import json, sys
from patroni.dcs.kubernetes import Kubernetes, KubernetesError

def outcome(call, *args):
    try:
        return call(*args)
    except KubernetesError:
        return "unreachable"

print(json.dumps([
    [outcome(dcs.attempt_to_acquire_leader), outcome(dcs.update_leader, None, 1)]
    for dcs in (Kubernetes(written, holder) for written, holder in json.loads(sys.argv[1]))
]))
`;

/** As Patroni starts PostgreSQL. */
const CALL_OF_START = `
import json, multiprocessing, os
from patroni.postgresql import postmaster

context = multiprocessing.get_context("spawn")
receiver, sender = context.Pipe(False)
command = ["-c", "import os; print(os.nice(0))"]
process = context.Process(target=postmaster.pg_ctl_start, args=(sender, command, {}))
process.start()
server = int(receiver.recv())
process.join()
print(json.dumps({"patroni": os.nice(0), "server": server}))
`;

const files = {
  "patroni/__init__.py": "",
  "patroni/dcs/__init__.py": "",
  "patroni/dcs/kubernetes.py": KUBERNETES,
  "patroni/postgresql/__init__.py": "",
  "patroni/postgresql/postmaster.py": POSTMASTER,
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "slipway-patroni-"));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function runPython(...args: string[]): unknown {
  const scripts = fileURLToPath(new URL(".", import.meta.url));
  const output = execFileSync("python3", ["-B", "-c", ...args], {
    env: { ...process.env, PYTHONPATH: `${scripts}:${folder}` },
    encoding: "utf8",
  });
  return JSON.parse(output);
}

test("a refused write is a lost lock only where another member has the lock", () => {
  const cases = [
    { written: true, holder: "pod-0", is: true },
    { written: false, holder: "pod-0", is: "unreachable" },
    { written: false, holder: "unknown", is: "unreachable" },
    { written: false, holder: "pod-1", is: false },
  ];
  const locks = cases.map(({ written, holder }) => [written, holder]);
  const outcomes = runPython(CALL_OF_LOCK, JSON.stringify(locks));
  expect(outcomes).toEqual(cases.map(({ is }) => [is, is]));
});

test("PostgreSQL runs at a lower priority than Patroni, which keeps its own", () => {
  const { patroni, server } = runPython(CALL_OF_START) as { patroni: number; server: number };
  expect(server).toBe(Math.min(patroni + 10, 19));
});
