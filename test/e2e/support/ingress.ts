import { request } from "undici";
import { stack } from "./stack.ts";

/** A request through the ingress to the application that owns `domain`. */
export async function throughIngress(domain: string, path = "/"): Promise<{ status: number; text: string }> {
  const response = await request(`${stack.ingressUrl}${path}`, { headers: { host: domain } });
  return { status: response.statusCode, text: await response.body.text() };
}
