import http from "node:http";
import https from "node:https";

/** What the ingress answered for a host; status 0: nothing, and `reason` says why. */
export interface IngressAnswer {
  status: number;
  reason: string;
}

/** Requests a path of a host at the ingress; never rejects. */
export type RequestIngress = (host: string, path: string) => Promise<IngressAnswer>;

const TIMEOUT_MS = 3_000;

/**
 * @param baseUrl address of the ingress controller inside the cluster. Its certificate is not checked: it is that of the
 *   outside name, and this is no test of it
 */
export function createIngressClient(baseUrl: string): RequestIngress {
  const { request } = baseUrl.startsWith("https:") ? https : http;
  return (host, path) =>
    new Promise((resolve) => {
      const options = {
        agent: false as const,
        // fetch would not send another host than the address's.
        headers: { host, "user-agent": "slipway-chart-test" },
        servername: host,
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      };
      const outgoing = request(new URL(path, baseUrl), options, (response) => {
        const { statusCode: status = 0, headers } = response;
        response.destroy();
        resolve({ status, reason: `${status}${headers.location ? ` to ${headers.location}` : ""}` });
      });
      outgoing.on("error", ({ message }) => resolve({ status: 0, reason: message }));
      outgoing.end();
    });
}

/** Whether an application has answered, and not the ingress in its place: a redirect may be the ingress's own. */
export const isServed = ({ status }: IngressAnswer): boolean => status >= 200 && status < 300;
