/** Settings of the installation about tenants' Git servers. */

import { z } from "zod";

const hostAndPort = z
  .string()
  .max(260)
  .regex(/^([a-z0-9.-]+|\[[0-9a-f:.]+\]):[0-9]{1,5}$/, "must be host:port, in lower case");

/** `SLIPWAY_GIT_ALLOWED_HOSTS`: comma-separated `host:port` whose addresses may be private. */
export const allowedGitHosts = z
  .string()
  .default("")
  .transform((text) =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  )
  .pipe(z.array(hostAndPort).max(64));
