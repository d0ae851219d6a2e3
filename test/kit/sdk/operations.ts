import { gitOperations } from "./git-operations.ts";
import { type Operation, type OperationId, on } from "./operation.ts";
import { organizationOperations } from "./organization-operations.ts";
import { projectOperations } from "./project-operations.ts";

/** A call of every operation of the API: it does not compile while one is missing. */
export const operations: Record<OperationId, Operation> = {
  ...projectOperations,
  ...gitOperations,
  ...organizationOperations,
  // The last one of all: nothing else needs the job.
  deleteProject: {
    answer: "503 OPERATOR_UNAVAILABLE",
    call: ({ slipway, job }) => slipway.DELETE("/v1/project/{id}", on(job)),
  },
};
