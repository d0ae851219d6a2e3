import { setTimeout as sleep } from "node:timers/promises";
import { cluster } from "../../e2e/support/cluster.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { systemNamespace } from "../../e2e/support/operator.ts";
import { type Attack, Tally } from "../attack.ts";

const HOURS = 6;
const NAME = "slipway-operator-ahead";
const OPERATOR = { namespace: systemNamespace, name: "slipway-operator" };
/** Loaded before the operator: the time of day is hours ahead, the monotonic clock is right. */
const SHIFT = `const Real = Date; const ahead = ${HOURS} * 3600e3;
globalThis.Date = class Date extends Real {
  constructor(...given) { given.length === 0 ? super(Real.now() + ahead) : super(...given); }
  static now() { return Real.now() + ahead; }
};`;

/** Another operator with the settings and the account of the others, on a machine whose clock is hours ahead. */
async function startAhead(): Promise<void> {
  const { spec } = await cluster.apps.readNamespacedDeployment(OPERATOR);
  const template = spec?.template;
  const [container, ...others] = template?.spec?.containers ?? [];
  if (!template?.spec || !container) {
    throw new Error("the operator's Deployment has no container");
  }
  const options = {
    name: "NODE_OPTIONS",
    value: `--import=data:text/javascript,${encodeURIComponent(SHIFT)}`,
  };
  const env = [...(container.env ?? []).filter(({ name }) => name !== options.name), options];
  const body = {
    metadata: { name: NAME, labels: template.metadata?.labels },
    spec: { ...template.spec, containers: [{ ...container, env }, ...others] },
  };
  await cluster.core.createNamespacedPod({ namespace: systemNamespace, body });
  await eventually(async () => {
    const { status } = await cluster.core.readNamespacedPod({ namespace: systemNamespace, name: NAME });
    if (status?.containerStatuses?.[0]?.state?.running === undefined) {
      throw new Error(`${NAME} does not run`);
    }
  });
}

const holder = async (): Promise<string> =>
  (await cluster.coordination.readNamespacedLease(OPERATOR)).spec?.holderIdentity ?? "";

export const clockAhead: Attack = {
  name: "clock-ahead",
  about: `an operator whose clock is ${HOURS} hours ahead tries to lead, and the leader's pod is deleted`,
  seconds: 60,
  isAlone: true,
  ends: "slipway-operator",
  expected: ["led by a right clock"],
  async prepare() {
    await startAhead();
    return {
      async run(signal) {
        const tally = new Tally();
        const leading = await holder();
        const { items } = await cluster.core.listNamespacedPod({ namespace: systemNamespace });
        const pod = items.find(({ metadata }) => leading.startsWith(metadata?.name ?? ""));
        const name = pod?.metadata?.name ?? "";
        await cluster.core.deleteNamespacedPod({ namespace: systemNamespace, name, gracePeriodSeconds: 0 });
        while (!signal.aborted) {
          if ((await holder()).startsWith(NAME)) {
            tally.add("led by the clock ahead");
          }
          await sleep(500, undefined, { signal }).catch(() => undefined);
        }
        const next = await holder();
        tally.add(next === leading || next.startsWith(NAME) ? "led by nobody new" : "led by a right clock");
        return tally.answers();
      },
      clean: async () => {
        await cluster.core.deleteNamespacedPod({ namespace: systemNamespace, name: NAME });
        await eventually(async () => {
          const { items } = await cluster.core.listNamespacedPod({ namespace: systemNamespace });
          if (items.some(({ metadata }) => metadata?.name === NAME)) {
            throw new Error(`${NAME} still exists`);
          }
        });
      },
    };
  },
};
