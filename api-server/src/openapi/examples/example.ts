/** A body to send. */
export interface RequestExample {
  summary: string;
  value: unknown;
}

/** Examples of one operation; tests hold all of them against the schemas, and send the bodies of creations. */
export interface OperationExamples {
  /** By name. */
  requests?: Readonly<Record<string, RequestExample>>;
  /** Of success answers, by status. */
  responses: Readonly<Record<number, unknown>>;
}
