/** Probes the ingress, from inside the cluster, whether it already routes a host. */

import http from "node:http";
import https from "node:https";
import { backoffDelay } from "@slipway/controller-runtime";
import { ACTIVATOR_HEADER, PROBE_USER_AGENT } from "@slipway/crds";

/** What the ingress answered about a host. */
export type ProbeResult =
  /** An instance answered, with whatever status. */
  | "serving"
  /** The activator answered, to which requests for projects that sleep are sent. */
  | "activator"
  /** The ingress knows the host but has no instance to route to yet. */
  | "no-instance"
  /** The ingress does not know the host, or the application itself answers exactly as an unknown host does. */
  | "unknown-host"
  /** The ingress refuses the probe, by an access list; whether an instance is behind it cannot be seen. */
  | "refused"
  /**
   * The ingress accepted the request and did not answer in time. It answers immediately for a host that it does not know:
   * so an instance is slow, or cannot be reached yet.
   */
  | "silent"
  /** The ingress cannot be reached. */
  | "unreachable";

/** Probes one host; never throws. */
export type IngressProbe = (host: string) => Promise<ProbeResult>;

/** Bytes of the answer that are read. */
const MAX_BODY = 64;

/**
 * @param baseUrl address of the ingress controller's Service, such as `http://traefik.slipway-ingress.svc`
 * @param timeoutMs until an answer's headers must be received; short, for a connection to an instance whose network policy is
 *   not yet in force hangs, and the next one finds it open
 */
export function createIngressProbe(baseUrl: string, timeoutMs = 1_500): IngressProbe {
  const url = new URL("/", baseUrl);
  const { request } = url.protocol === "https:" ? https : http;
  return (host) =>
    new Promise((resolve) => {
      // A connection of its own: behind a Service, a kept one would always reach the same ingress pod.
      let connected = false;
      const options = {
        method: "GET",
        agent: false as const,
        headers: { host, "user-agent": PROBE_USER_AGENT },
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(timeoutMs),
      };
      const outgoing = request(url, options, (response) => {
        const status = response.statusCode ?? 0;
        let body = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          body += chunk;
          if (body.length > MAX_BODY) {
            response.destroy();
          }
        });
        response.on("error", () => resolve("unreachable"));
        const isActivator = response.headers[ACTIVATOR_HEADER] !== undefined;
        response.on("close", () => resolve(isActivator ? "activator" : classify(status, body)));
      });
      outgoing.on("socket", (socket) =>
        socket.once("connect", () => {
          connected = true;
        }),
      );
      outgoing.on("error", (error) =>
        resolve(connected && error.name === "AbortError" ? "silent" : "unreachable"),
      );
      outgoing.end();
    });
}

/**
 * Traefik's and ingress-nginx's own answers, distinguished from an application's by their exact bodies. An application may answer
 * 404 in the same words (Go's default does), which the caller has to allow for.
 */
export function classify(status: number, body: string): ProbeResult {
  const text = body.trim();
  const nginx = text.startsWith("<html>\r\n<head><title>") || text.startsWith("<html>\n<head><title>");
  switch (status) {
    case 403:
      return text === "Forbidden" || nginx ? "refused" : "serving";
    case 404:
      return text === "404 page not found" || nginx ? "unknown-host" : "serving";
    case 502:
      return text === "Bad Gateway" || nginx ? "no-instance" : "serving";
    case 503:
      return text === "no available server" || text === "Service Unavailable" || nginx
        ? "no-instance"
        : "serving";
    case 504:
      return text === "Gateway Timeout" || nginx ? "no-instance" : "serving";
    default:
      return "serving";
  }
}

/** How long answers that may be right are not trusted yet, in milliseconds; see `RouteCheck.check`. */
export const DOUBT_MS: Readonly<Partial<Record<ProbeResult, number>>> = {
  "unknown-host": 20_000,
  // Traefik applies changes every two seconds by default, later on a busy machine.
  refused: 5_000,
  silent: 10_000,
};

/** Pause after an answer of an ingress that works and is likely to change soon, in milliseconds. */
const SHORT_MS = 500;
/** After so many equal answers a change is no longer likely. */
const SHORT_TIMES = 20;
/** First pause for an ingress or instance that does not answer, in milliseconds. */
const SILENT_MS = 250;
const LONGEST_MS = 30_000;

/**
 * Pause before the next probe, in milliseconds.
 * @param repeats how many equal answers preceded the last one, in a row
 */
export function pauseMs(result: ProbeResult, repeats: number): number {
  return result === "silent" || result === "unreachable"
    ? backoffDelay(repeats, { baseMs: SILENT_MS, maxMs: LONGEST_MS })
    : backoffDelay(Math.max(0, repeats - SHORT_TIMES), { baseMs: SHORT_MS, maxMs: LONGEST_MS });
}
