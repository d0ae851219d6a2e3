import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

const file = join(import.meta.dirname, "../../../.slipway/stack.env");

/** The values of the stack file (docs/stack.md); throws with the command to run when there is no stack. */
function load(): Readonly<Record<string, string | undefined>> {
  try {
    return parseEnv(readFileSync(file, "utf8"));
  } catch (error) {
    throw new Error(`no stack is running (${file} cannot be read): run hack/up.sh`, { cause: error });
  }
}

const values = load();

function value(key: string): string {
  const found = values[key];
  if (found === undefined || found === "") {
    throw new Error(`${file} has no ${key}: run hack/up.sh`);
  }
  return found;
}

/** The running stack, as its file describes it. */
export const stack = {
  url: value("SLIPWAY_URL"),
  ingressUrl: value("SLIPWAY_INGRESS_URL"),
  organization: value("SLIPWAY_ORGANIZATION_ID"),
  apiKey: value("SLIPWAY_API_KEY"),
  ownerToken: value("SLIPWAY_OWNER_TOKEN"),
  domainZone: value("SLIPWAY_DOMAIN_ZONE"),
  imageHttp: value("SLIPWAY_IMAGE_HTTP"),
  imageHttpV2: value("SLIPWAY_IMAGE_HTTP_V2"),
  imageJob: value("SLIPWAY_IMAGE_JOB"),
  clientCidr: value("SLIPWAY_CLIENT_CIDR"),
  /** This machine's address, as pods and the ingress see it. */
  clientAddress: value("SLIPWAY_CLIENT_CIDR").replace(/\/\d+$/, ""),
  databaseCa: value("SLIPWAY_DATABASE_CA"),
  kubeconfig: value("KUBECONFIG"),
  /** The stack's own Git server, which exists unless the stack was started without builds. */
  get git() {
    return {
      url: value("SLIPWAY_GIT_URL"),
      username: value("SLIPWAY_GIT_USERNAME"),
      token: value("SLIPWAY_GIT_TOKEN"),
      caFile: value("SLIPWAY_GIT_CA"),
    };
  },
} as const;

export const namespaceOf = (organization: string): string => `slipway-org-${organization}`;
