/** Settings of the installation about servers that tenants name. */

import { z } from "zod";

const hostAndPort = z
  .string()
  .max(260)
  .regex(/^([a-z0-9.-]+|\[[0-9a-f:.]+\]):[0-9]{1,5}$/, "must be host:port, in lower case");

/** Comma-separated `host:port` whose addresses may be private: `SLIPWAY_GIT_ALLOWED_HOSTS`, `SLIPWAY_WEBHOOK_ALLOWED_HOSTS`. */
export const allowedHosts = z
  .string()
  .default("")
  .transform((text) =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  )
  .pipe(z.array(hostAndPort).max(64));
