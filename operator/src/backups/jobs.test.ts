import { fileURLToPath } from "node:url";
import { goldenTests } from "../../../test/kit/operator/golden.ts";
import type { Place } from "./agent/protocol.ts";
import { scriptsOf } from "./engines/index.ts";
import { type EngineInput, engineJob, eraseJob, type JobInput } from "./job.ts";

interface Case {
  engine: string;
  job: Omit<JobInput, "owner">;
  projectId?: string;
  stored?: { sha256: string; bytes: number };
  place?: Place;
}

const owner = {
  apiVersion: "slipway.dev/v1alpha1",
  kind: "Backup",
  name: "shop-b29500000",
  uid: "uid-of-the-owner",
  controller: true,
  blockOwnerDeletion: true,
};

goldenTests(fileURLToPath(new URL("testdata", import.meta.url)), (given) => {
  const { engine, job, projectId, stored } = given as Case;
  const input: JobInput = { ...job, owner };
  if (job.work === "erase") {
    return [eraseJob(input)];
  }
  const scripts = scriptsOf(engine);
  if (!scripts) {
    throw new Error(`no engine ${engine}`);
  }
  const engineInput: EngineInput = {
    scripts,
    image: { image: `registry.example/${engine}@sha256:${"a".repeat(64)}`, uid: 999, gid: 999, features: {} },
    projectId,
    scratchGb: 10,
    sha256: stored?.sha256,
    storedBytes: stored?.bytes,
  };
  return [engineJob(input, engineInput)];
});
