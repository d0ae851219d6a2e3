import { expect } from "vitest";
import { cluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { stack } from "./stack.ts";

/** One run, as its own container reported it. Times are whole seconds of the container's clock. */
export interface ReportedRun {
  readonly pod: string;
  readonly job: string;
  readonly began: number;
  /** Undefined when it never said that it ended. */
  readonly ended?: number;
}

/** A server inside the cluster to which jobs report their start and end: a log that no part of the platform writes. */
export interface Sink {
  /** A shell script that reports its start and its end to the sink, with some seconds in between. */
  script(job: string, seconds: number): string;
  /** All that was reported so far. @throws Error when a pod reported the same twice */
  reports(): Promise<ReportedRun[]>;
}

const name = "sink";

/** Starts one in an organization's namespace. It ends with the namespace or with `stop`. */
export async function startSink(namespace: string): Promise<Sink & { stop: () => Promise<void> }> {
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name, labels: { "slipway.dev/project": name } },
      spec: {
        automountServiceAccountToken: false,
        containers: [
          {
            name: "app",
            image: stack.imageHttp,
            securityContext: { allowPrivilegeEscalation: false },
            readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
          },
        ],
      },
    },
  });
  const address = await eventually(async () => {
    const { status } = await cluster.core.readNamespacedPod({ namespace, name });
    expect(status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
    return status?.podIP ?? "";
  });
  const report = (what: string, job: string) => {
    const request = `GET /reported/${what}/${job}/$HOSTNAME/$(date +%s) HTTP/1.0\\r\\n\\r\\n`;
    return `printf "${request}" | nc -w 5 ${address} 8080 | grep -q "200 OK" || exit 9`;
  };
  return {
    script: (job, seconds) => `${report("began", job)}; sleep ${seconds}; ${report("ended", job)}`,
    reports: async () => {
      const log = await cluster.core.readNamespacedPodLog({ namespace, name });
      return parse(log);
    },
    stop: async () => {
      await cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 1 });
    },
  };
}

function parse(log: string): ReportedRun[] {
  const runs = new Map<string, ReportedRun>();
  for (const [, what, job = "", pod = "", at] of log.matchAll(
    /\/reported\/(began|ended)\/([^/\s]+)\/([^/\s]+)\/(\d+)/g,
  )) {
    const known = runs.get(pod);
    if ((what === "began") === (known !== undefined) || known?.ended !== undefined) {
      throw new Error(`${pod} reported ${what} out of order`);
    }
    runs.set(pod, known === undefined ? { pod, job, began: Number(at) } : { ...known, ended: Number(at) });
  }
  return [...runs.values()];
}
