import { customDomainRecords, type DnsRecord, type Project } from "@slipway/crds";

/** State of a custom domain, as `/v1` shows it. */
export interface CustomDomainSetup {
  hostname: string;
  status: string;
  ssl_status: string;
  dns_records: DnsRecord[];
  /** What is missing, where the operator reports it. */
  message?: string;
}

/**
 * Every custom domain of the spec, in its order. One that the operator has not reported yet is pending, and its records
 * are known all the same. Pure.
 * @param target the project's default domain
 */
export function customDomainSetup(
  { spec, status }: Pick<Project, "spec" | "status">,
  organization: string,
  target: string,
): CustomDomainSetup[] {
  return (spec.customDomains ?? []).map((hostname) => {
    const reported = status?.customDomains?.find((domain) => domain.hostname === hostname);
    return {
      hostname,
      status: reported?.status ?? "pending",
      ssl_status: reported?.sslStatus ?? "pending_validation",
      dns_records: reported?.dnsRecords ?? customDomainRecords({ hostname, organization, target }),
      ...(reported?.message ? { message: reported.message } : {}),
    };
  });
}
