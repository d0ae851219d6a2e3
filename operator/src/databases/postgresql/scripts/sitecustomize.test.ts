import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

/** Python itself loads the correction, and a Patroni that has only what it touches. */

const STAND_IN = `
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

const CALL = `
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

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "slipway-patroni-"));
  mkdirSync(join(folder, "patroni/dcs"), { recursive: true });
  for (const file of ["patroni/__init__.py", "patroni/dcs/__init__.py"]) {
    writeFileSync(join(folder, file), "");
  }
  writeFileSync(join(folder, "patroni/dcs/kubernetes.py"), STAND_IN);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a refused write is a lost lock only where another member has the lock", () => {
  const cases = [
    { written: true, holder: "pod-0", is: true },
    { written: false, holder: "pod-0", is: "unreachable" },
    { written: false, holder: "unknown", is: "unreachable" },
    { written: false, holder: "pod-1", is: false },
  ];
  const scripts = fileURLToPath(new URL(".", import.meta.url));
  const args = JSON.stringify(cases.map(({ written, holder }) => [written, holder]));
  const output = execFileSync("python3", ["-B", "-c", CALL, args], {
    env: { ...process.env, PYTHONPATH: `${scripts}:${folder}` },
    encoding: "utf8",
  });
  expect(JSON.parse(output)).toEqual(cases.map(({ is }) => [is, is]));
});
