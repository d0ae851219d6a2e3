/** Id of the project that the examples are about. */
export const EXAMPLE_ID = "p4k8z1m6x0c3v9b2n7q5";
/** Id of a run of it: that of 2026-11-21T03:00Z. */
export const EXAMPLE_RUN_ID = `${EXAMPLE_ID}-29920500`;
export const EXAMPLE_BACKUP_ID = `${EXAMPLE_ID}-b29928540`;
export const EXAMPLE_CONNECTION_ID = "g7f2k9d4s1x8w3q6z5t0";
export const EXAMPLE_REPOSITORY_ID = "rMTc-0a1b2c3d4e5f";
export const EXAMPLE_BUILD_ID = "b5q2m8n1v7c4x0z9l3k6";
