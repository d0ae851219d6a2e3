import { Manager, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { chartCatalog } from "../../../../test/kit/databases/examples.ts";
import type { Node } from "../../metrics/nodes.ts";
import { addDatabaseSamples } from "./add.ts";
import { FullVolumes } from "./full-volumes.ts";

test("results are counted from the start, of every engine that is sampled", async () => {
  const manager = new Manager({
    name: "test",
    identity: "test",
    cluster: { url: "http://127.0.0.1:9" },
    log: silentLogger,
  });
  addDatabaseSamples(manager, {
    cluster: { url: "http://127.0.0.1:9" },
    config: { namespace: "slipway-system", kubelet: { caFile: undefined, verify: true } },
    ledger: { record: async () => undefined, list: async () => [] },
    authority: { current: () => Promise.reject(new Error("none")) },
    catalog: () => chartCatalog,
    stores: { projects: new Store<Project>(), nodes: new Store<Node>() },
    fullVolumes: new FullVolumes(),
    projects: { enqueue: () => {} },
  });
  const served = await manager.registry.metrics();
  for (const type of ["postgresql", "valkey"]) {
    for (const result of ["success", "error"]) {
      expect(served).toContain(`slipway_database_samples_total{type="${type}",result="${result}"} 0`);
    }
  }
});
