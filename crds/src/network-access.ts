import type { ProjectSpec } from "./project/index.ts";

type NetworkAccess = NonNullable<ProjectSpec["networkAccess"]>;

/** Whether a range of an access list contains every address: `0.0.0.0/0` does, of both families. */
export function isEverybody(cidr: string): boolean {
  return /^[0-9.]+\/0$/.test(cidr);
}

/** Whether access lists let everybody in. No lists at all do. This is all that a plan without network access may list. */
export function isOpenAccess(access: NetworkAccess | undefined): boolean {
  return (
    access === undefined ||
    ((access.ingressBlackList ?? []).length === 0 &&
      access.ingressWhiteList.some(({ cidr }) => isEverybody(cidr)))
  );
}
