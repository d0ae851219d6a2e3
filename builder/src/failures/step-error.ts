import { type Failure, type FailureCode, type FailureDetail, failure } from "./codes.ts";

/** Ends a step: the build has failed, for a reason that is known. */
export class StepError extends Error {
  override name = "StepError";
  readonly failure: Failure;

  constructor(told: Failure) {
    super(told.message);
    this.failure = told;
  }

  static of(code: FailureCode, detail?: FailureDetail): StepError {
    return new StepError(failure(code, detail));
  }
}
