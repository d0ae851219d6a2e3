/** Whether the long forms of tests are run: `hack/test.sh --long`, or `SLIPWAY_TEST_LONG=1`. */
export const isLong = process.env.SLIPWAY_TEST_LONG === "1";

/** The cases that are run: all of them in the long form, those that have no cheaper test otherwise. */
export const casesToRun = <T extends { readonly isLong?: true }>(cases: readonly T[]): readonly T[] =>
  isLong ? cases : cases.filter((each) => !each.isLong);
