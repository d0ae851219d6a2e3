/**
 * The platform's own ledger with two instances, for the chart: Patroni and its members as the driver makes them. What differs
 * is here. The operator does not reconcile them, for it needs the ledger itself (docs/adr/0018-two-ledger-instances.md). Pure.
 */

import { databaseNames, databasePodName } from "@slipway/crds";
import { patroniScripts, patroniSettings, patroniYaml, type Sizing, sharedConfig } from "./config.ts";
import { patroniRules } from "./manifests.ts";
import { MEMBER_PORTS, paths } from "./names.ts";
import { environment, probes } from "./stateful-set.ts";

/** Names of its objects, by which the chart's templates find it, too. */
const ID = "slipway-ledger";

const MEMBERS = 2;

/** The chart's defaults of `ledger.embedded`. */
const sizing: Sizing = {
  members: MEMBERS,
  memoryBytes: 512 * 1024 * 1024,
  cpus: 1,
  storage: { capacityGb: 5, template: { size: "5Gi" } },
  image: { image: "", uid: 999, gid: 999, features: { pgStatStatements: false } },
};

/** Settings that all members share. The chart adds its own parameters. */
export function ledgerSettings() {
  const { postgresql, ...rest } = sharedConfig(sizing);
  return { ...rest, postgresql: { ...postgresql, pg_hba: admitPlainClients(postgresql.pg_hba) } };
}

/** Clients are the platform's own pods, which a single instance serves without TLS as well: both have the same URL. */
function admitPlainClients(rules: readonly string[]): string[] {
  const ofClients = ["hostssl all all all scram-sha-256", "host all all all reject"];
  const kept = rules.filter((rule) => !ofClients.includes(rule));
  if (kept.length !== rules.length - ofClients.length) {
    throw new Error(`the driver has other rules of access: ${rules.join("; ")}`);
  }
  return [...kept, "host all all all scram-sha-256"];
}

/** Patroni's files: of every member, and of the first one alone, which may make a new ledger. */
export function ledgerFiles(): Record<string, string> {
  const settings = patroniSettings({ ...sizing, id: ID, namespace: "", type: "postgresql" });
  const { bootstrap: _, kubernetes, ...rest } = settings;
  const { namespace: __, ...found } = kubernetes;
  const patroni = {
    ...rest,
    kubernetes: {
      ...found,
      scope_label: "app.kubernetes.io/name",
      labels: { "app.kubernetes.io/part-of": "slipway" },
    },
  };
  const first = {
    bootstrap: {
      // Settings are in the ConfigMap that the chart makes; Patroni wants the key all the same.
      dcs: {},
      method: "ledger",
      ledger: { command: `sh ${paths.patroni}/initialize.sh`, no_params: true },
    },
  };
  return { "patroni.yml": patroniYaml(patroni), "first.yml": patroniYaml(first), ...patroniScripts };
}

/** What a member's container has: environment, ports and probes. */
export function ledgerContainer() {
  const env = environment({ names: databaseNames(ID) }).filter(({ name }) => name !== "SLIPWAY_KEPT");
  const namespace = {
    name: "PATRONI_KUBERNETES_NAMESPACE",
    valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } },
  };
  const ports = MEMBER_PORTS.map(({ name, port }) => ({ name, containerPort: port, protocol: "TCP" }));
  return { env: [...env, namespace], ports, ...probes };
}

/** What the members' account may do. */
export function ledgerRules() {
  const pods = Array.from({ length: MEMBERS }, (_, ordinal) => databasePodName(ID, ordinal));
  return patroniRules(ID, pods);
}
