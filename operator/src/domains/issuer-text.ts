/** What an issuer says of a certificate, without the addresses of the platform's own servers. Pure. */

import { isIP } from "node:net";

const CUT = "[…]";
/** More is not read: an issuer repeats what servers have answered to it. */
const READ_MAX_LENGTH = 4_096;
const MAX_LENGTH = 1_024;

/** Without URLs, addresses, and names of hosts other than the domain and those below it. */
export function withoutAddresses(text: string, hostname: string): string {
  return text
    .slice(0, READ_MAX_LENGTH)
    .replaceAll(/[\w.:/@%?&=+#[\]~-]+/g, (token) => (isShown(token, hostname) ? token : CUT))
    .slice(0, MAX_LENGTH);
}

/** Whether a word without spaces has no address in it. */
function isShown(token: string, hostname: string): boolean {
  if (token.includes("://") || token.split(/[[\]/%]/).some((part) => isIP(part.replace(/[.:]$/, "")) !== 0)) {
    return false;
  }
  const name = token.replace(/[.:]+$/, "").toLowerCase();
  if (name === hostname || name.endsWith(`.${hostname}`)) {
    return true;
  }
  const hasPort = /^[\w-]+:\d+$/.test(name);
  return !hasPort && !/\w\.\w/.test(name);
}
