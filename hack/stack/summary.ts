import { stackFile, toolDir } from "../lib/paths.ts";
import { domainZone } from "./chart.ts";
import type { Stack } from "./file.ts";

/** The body that creates an application from the sample image; legal for the free plan. */
export function firstApplication(image: string): object {
  return {
    name: "hello-world",
    plan: "free",
    payment_mode: "hourly",
    config: {
      type_project: "http",
      exposure: "public",
      image: { url: image, is_public: true },
      port: 8080,
      instances: 1,
      storage: { persistent: false, capacity: 1 },
      envs: [],
      network_access: {
        ingress_white_list: [{ cidr: "0.0.0.0/0", description: "everybody" }],
        ingress_black_list: [],
      },
    },
  };
}

/** A line for a shell, in which the stack file has been sourced, that creates an application. */
export function curlLine(): string {
  const body = JSON.stringify(firstApplication("'\"$SLIPWAY_IMAGE_HTTP\"'"));
  // JSON.stringify escapes the quotes that end and begin the shell's.
  const shell = body.replaceAll('\\"', '"');
  return `curl -sS "$SLIPWAY_URL/v1/project" -H "x-api-key: $SLIPWAY_API_KEY" -H 'content-type: application/json' -d '${shell}'`;
}

/** What hack/up.sh ends with: addresses, the first thing to do, and where everything else is written. */
export function summary(stack: Stack): string {
  const lines = ["", "Slipway is up."];
  if (stack.url && stack.ingressUrl) {
    lines.push(`  API        ${stack.url}/v1`);
    lines.push(`  ingress    ${stack.ingressUrl}  (a project's domain, NAME.${domainZone}, as Host)`);
  } else {
    lines.push("  API        kubectl -n slipway-system port-forward service/slipway-api-server 8081:80");
    lines.push("             and export SLIPWAY_URL=http://127.0.0.1:8081");
  }
  const path = stack.url ? ` PATH=${toolDir}:$PATH` : "";
  lines.push(`  kubectl    export KUBECONFIG=${stack.kubeconfig}${path}`);
  lines.push(`  stack file ${stackFile}`, firstSteps());
  return lines.join("\n");
}

/** How to create the first application: as soon as the stack file has what that needs, while builds and databases are still made. */
export function firstSteps(): string {
  return ["", "Create an application:", "", `  . ${stackFile}`, `  ${curlLine()}`, ""].join("\n");
}
