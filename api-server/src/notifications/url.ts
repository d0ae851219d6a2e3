import { hostAndPort } from "@slipway/git";
import { failures } from "../errors/catalog.ts";

/** The URL that deliveries are sent to, with its host and port. */
export interface ReceiverUrl {
  url: string;
  host: string;
}

/**
 * Checks the form of a receiver's URL. Where it leads is checked for each connection: a name may lead elsewhere later.
 * @throws Failure 400
 */
export function receiverUrl(text: string): ReceiverUrl {
  const url = URL.parse(text);
  const why =
    url === null || /[\s\p{Cc}\\]/u.test(text)
      ? "must be a URL"
      : url.protocol !== "https:" || !/^https:\/\/[^/]/i.test(text)
        ? "must begin with https:// and a host"
        : url.username !== "" || url.password !== ""
          ? "must not have a credential"
          : text.includes("#")
            ? "must not have a fragment"
            : undefined;
  if (why !== undefined || url === null) {
    throw failures.validation([
      { field: "url", code: "WEBHOOK_URL_INVALID", message: why ?? "must be a URL" },
    ]);
  }
  return { url: url.href, host: hostAndPort(url) };
}
