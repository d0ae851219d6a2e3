/** Name of the leader's Lease in the operator's namespace; the Leases of further shards end in their index. */
export const LEASE_NAME = "slipway-operator";
