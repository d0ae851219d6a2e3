import type { Counts } from "./counts.ts";

/** A stage of hack/test.sh. */
export interface Stage {
  readonly about: string;
  /** @param isBeside whether another stage runs meanwhile */
  readonly run: (isBeside: boolean) => Promise<Counts>;
  /** A stage that mostly waits: this one runs meanwhile when both are chosen, after the others beside it. */
  readonly beside?: string | undefined;
}
