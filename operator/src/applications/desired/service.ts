import type { DesiredObject } from "../../desired.ts";
import { sleepLabels } from "../../sleep/desired.ts";
import { childMetadata } from "../../workload/app.ts";
import { type HttpApp, instanceSelector } from "../app.ts";

/** The address of an HTTP project inside its organization: port 80, whatever port the application listens on. A worker has none. */
export function service(app: HttpApp): DesiredObject | undefined {
  if (app.port === undefined) {
    return undefined;
  }
  const metadata = childMetadata(app);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadata, labels: { ...metadata.labels, ...sleepLabels(app) } },
    spec: {
      type: "ClusterIP",
      selector: instanceSelector(app).matchLabels,
      ports: [{ name: "http", port: 80, targetPort: "http", protocol: "TCP" }],
    },
  };
}
