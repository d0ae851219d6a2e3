import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicAddress } from "@slipway/git";
import { DeliveryError } from "./receiver.ts";

/** All addresses of a host. */
export type Resolve = (host: string) => Promise<{ address: string; family: number }[]>;

export interface AddressOptions {
  /** `host:port` of receivers whose addresses may be private. */
  allowedHosts: ReadonlySet<string>;
  /** The system's resolver unless given. */
  resolve?: Resolve;
}

/**
 * The address that a connection to a host goes to. A host is resolved once for a connection, and all of its addresses are judged: an answer
 * that changes in between changes nothing, and a name with public and private ones is an attack.
 * @throws DeliveryError AddressRefused, ReceiverUnavailable
 */
export async function addressOf(
  host: string,
  port: number,
  { allowedHosts, resolve = systemResolve }: AddressOptions,
): Promise<string> {
  const literal = host.replace(/^\[|\]$/g, "");
  const found = isIP(literal) !== 0 ? [literal] : await addressesOf(literal, resolve);
  const isAllowed = allowedHosts.has(`${host.toLowerCase()}:${port}`);
  if (!isAllowed && found.some((address) => !isPublicAddress(address))) {
    throw new DeliveryError("AddressRefused", "the receiver's address is not a public one");
  }
  const [address] = found;
  if (address === undefined) {
    throw new DeliveryError("ReceiverUnavailable", "the receiver's name has no address");
  }
  return address;
}

async function addressesOf(host: string, resolve: Resolve): Promise<string[]> {
  try {
    return (await resolve(host)).map(({ address }) => address);
  } catch (cause) {
    throw new DeliveryError("ReceiverUnavailable", "the receiver's name cannot be resolved", { cause });
  }
}

const systemResolve: Resolve = (host) => systemLookup(host, { all: true, verbatim: true });
