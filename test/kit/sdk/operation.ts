import type { operations, Slipway } from "@slipway/sdk";

/** What calls of all operations act on: made by earlier calls of the table, or before it. */
export interface Subjects {
  slipway: Slipway;
  /** A paid HTTP project. */
  app: string;
  job: string;
  database: string;
  group: string;
  webhook: string;
  recipient: string;
}

/** One call of an operation, and what a server without operator, Git server and store of analytics answers it. */
export interface Operation {
  /** `200`, or the status and the code of a documented failure: `404 BUILD_NOT_FOUND`. */
  readonly answer: string;
  readonly call: (subjects: Subjects) => Promise<unknown>;
}

export type OperationId = keyof operations;

/** Ids that are well-formed, and of nothing. */
export const absent = {
  backup: "pabsent-b29928540",
  build: "babsent0000000000000",
  connection: "gabsent0000000000000",
  drain: "labsent0000000000000",
  delivery: `evt_${"0".repeat(32)}`,
  invoice: "2026-000042",
  repository: "repository",
  run: "pabsent-29920983-k3x9q0v2m7",
};

/** Parameters of an operation on a project. */
export const on = (id: string) => ({ params: { path: { id } } });
