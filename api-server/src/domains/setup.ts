import { customDomainRecords, type DnsRecord, type Project } from "@slipway/crds";

/** Where a custom domain stands, as `/v1` shows it. */
export interface CustomDomainSetup {
  hostname: string;
  status: string;
  ssl_status: string;
  dns_records: DnsRecord[];
  /** What is missing, where the operator says so. */
  message?: string;
}

/**
 * Every custom domain of the spec, in its order. One that the operator has not told about yet is pending, and its records
 * are known all the same. Pure.
 * @param target the project's default domain
 */
export function customDomainSetup(
  { spec, status }: Pick<Project, "spec" | "status">,
  organization: string,
  target: string,
): CustomDomainSetup[] {
  return (spec.customDomains ?? []).map((hostname) => {
    const told = status?.customDomains?.find((domain) => domain.hostname === hostname);
    return {
      hostname,
      status: told?.status ?? "pending",
      ssl_status: told?.sslStatus ?? "pending_validation",
      dns_records: told?.dnsRecords ?? customDomainRecords({ hostname, organization, target }),
      ...(told?.message ? { message: told.message } : {}),
    };
  });
}
