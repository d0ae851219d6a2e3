import WebSocket, { type RawData } from "ws";
import type { ApiserverAccess } from "./apiserver-access.ts";

/** Data and errors of the one forwarded port, as `k8s.io/kubelet/pkg/cri/streaming/portforward` numbers them. */
const DATA = 0;
const PROTOCOL = "v4.channel.k8s.io";
const LINE_FEED = 10;

export interface PodPort {
  namespace: string;
  pod: string;
  port: number;
}

/** Nothing was sent to the pod: the request may be repeated. */
export class NotReached extends Error {
  override readonly name = "NotReached";
}

/**
 * Sends a request to a port of a pod, through the apiserver, and returns the line that the pod answers. The kubelet reports
 * the end of a pod's connection a second late, so the line's end counts. No process is started in the pod, and no port is
 * opened on this machine.
 * @throws NotReached when nothing listens there or the apiserver refuses; Error when the connection ends within the line
 */
export function requestPod(
  { server, headers, tls }: ApiserverAccess,
  { namespace, pod, port }: PodPort,
  request: string,
  timeoutMs: number,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/portforward?ports=${port}`;
  const options = { ...tls, headers, handshakeTimeout: 10_000, perMessageDeflate: false };
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${server.replace(/^http/, "ws")}${path}`, [PROTOCOL], options);
    const chunks: Buffer[] = [];
    let refusal = "";
    /** The first message of either channel is the port's number. */
    const begun = new Set<number>();
    const end = () => {
      clearTimeout(timer);
      socket.terminate();
    };
    const fail = (error: Error) => {
      end();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    socket.on("unexpected-response", (_request, { statusCode }) =>
      fail(new NotReached(`the apiserver answers ${statusCode} to a port-forward`)),
    );
    socket.on("error", (error) => fail(begun.size > 0 ? error : new NotReached(error.message)));
    socket.on("open", () => socket.send(Buffer.concat([Buffer.of(DATA), Buffer.from(request)])));
    socket.on("message", (data) => {
      const [channel = 0, ...rest] = bytes(data);
      if (!begun.has(channel)) {
        begun.add(channel);
      } else if (channel === DATA) {
        chunks.push(Buffer.from(rest));
        if (rest.at(-1) !== LINE_FEED) {
          return;
        }
        end();
        resolve(Buffer.concat(chunks).toString("utf8"));
      } else {
        refusal += Buffer.from(rest).toString("utf8");
      }
      // The kubelet keeps the connection after what it could not reach.
      if (refusal !== "" && chunks.length === 0) {
        fail(new NotReached(refusal));
      }
    });
    socket.on("close", () => {
      clearTimeout(timer);
      if (chunks.length > 0) {
        reject(new Error("the connection ended within the answer"));
      } else if (refusal !== "" || begun.size === 0) {
        reject(new NotReached(refusal || "the connection ended"));
      } else {
        reject(new Error("the connection ended without an answer"));
      }
    });
  });
}

function bytes(data: RawData): Buffer {
  if (Array.isArray(data)) {
    return Buffer.concat(data);
  }
  return data instanceof ArrayBuffer ? Buffer.from(data) : data;
}
