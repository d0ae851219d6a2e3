/** Addresses of Git servers as tenants give them. */

import { GitError } from "../errors.ts";

/** Longest address, in characters. */
export const INSTANCE_URL_MAX_LENGTH = 512;

const invalid = (why: string) => new GitError("InstanceUrlInvalid", `the instance's address ${why}`);

/**
 * The canonical form: `https://host[:port][/path]`, without a slash at the end. A server may live below a path.
 * @throws GitError InstanceUrlInvalid that says what is wrong
 */
export function canonicalInstanceUrl(text: string): string {
  if (text.length > INSTANCE_URL_MAX_LENGTH) {
    throw invalid(`is longer than ${INSTANCE_URL_MAX_LENGTH} characters`);
  }
  // The parser drops and turns these silently; a person who wrote them means something else.
  if (/[\s\p{Cc}\\]/u.test(text)) {
    throw invalid("holds spaces, backslashes or control characters");
  }
  const url = URL.parse(text);
  if (url === null) {
    throw invalid("is no URL");
  }
  if (url.protocol !== "https:") {
    throw invalid("must begin with https://");
  }
  if (!/^https:\/\/[^/]/i.test(text)) {
    throw invalid("must begin with https:// and a host");
  }
  if (url.username !== "" || url.password !== "" || text.includes("@")) {
    throw invalid("must not hold a credential");
  }
  // The parser takes dots out of a path, however they are written.
  if (text.includes("%") || /\/\.{1,2}(\/|$)/.test(text)) {
    throw invalid("has a path of other than plain characters");
  }
  if (text.includes("?") || text.includes("#")) {
    throw invalid("must not have a query or a fragment");
  }
  if (url.hostname === "" || url.hostname.endsWith(".")) {
    throw invalid("has no host name");
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(path)) {
    throw invalid("has a path of other than plain characters");
  }
  return `${url.origin}${path}`;
}

/** `host:port` of an address, as configuration names those that may be private. */
export function hostAndPort(url: URL): string {
  return `${url.hostname}:${url.port === "" ? "443" : url.port}`;
}
