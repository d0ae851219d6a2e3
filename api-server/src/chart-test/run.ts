import { checkKeys } from "./access.ts";
import { testApplication } from "./application.ts";
import type { Context } from "./context.ts";
import { TestFailure } from "./failure.ts";
import { testJob } from "./job.ts";
import { isLeftOver, NAME_PREFIX } from "./names.ts";
import type { Budget } from "./poll.ts";
import { deleteProject, findProjects } from "./projects.ts";
import { CLEANUP_MS } from "./settings.ts";

/**
 * Runs the steps one after the other, and deletes what they created, however they end.
 * @throws TestFailure with what failed first and what to check
 */
export async function runChartTest(context: Context): Promise<void> {
  await checkKeys(context);
  try {
    await deleteLeftOvers(context);
    await testApplication(context);
    await testJob(context);
  } catch (error) {
    await cleanUp(context).catch((failure: Error) => context.report(`not deleted: ${failure.message}`));
    throw error;
  }
}

/** What a killed run left would count against the organization's limits forever. */
async function deleteLeftOvers({ call, budget, report }: Context): Promise<void> {
  const found = await findProjects(call, budget, NAME_PREFIX);
  for (const { id, name } of found.filter(({ name }) => isLeftOver(name, budget.clock.now()))) {
    await deleteProject(call, budget, id);
    report(`deleted ${name}, which an earlier run had left`);
  }
}

/** By name: a creation whose answer was lost has no id here. With a budget of its own, which a signal does not end. */
async function cleanUp({ call, budget: { clock }, suffix, report }: Context): Promise<void> {
  const budget: Budget = { clock, deadline: clock.monotonic() + CLEANUP_MS };
  for (const { id, name } of await findProjects(call, budget, suffix)) {
    await deleteProject(call, budget, id);
    report(`deleted ${name}`);
  }
}

/** What a failure says to the person who runs the test. */
export function explain(error: unknown): string[] {
  const { message, stack } = error as Error;
  return error instanceof TestFailure
    ? [`FAILED: ${message}`, `What to check: ${error.check}.`]
    : [`FAILED: ${stack ?? message}`];
}
