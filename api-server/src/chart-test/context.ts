import type { Call } from "./client.ts";
import type { RequestIngress } from "./ingress.ts";
import type { Budget } from "./poll.ts";
import type { Settings } from "./settings.ts";

/** What the steps of one run share. */
export interface Context {
  settings: Settings;
  call: Call;
  /** Undefined: the address of the ingress is not known. */
  requestIngress: RequestIngress | undefined;
  budget: Budget;
  /** What the names of this run's projects end with. */
  suffix: string;
  /** Reports a step that is done to the person who runs the test. */
  report: (line: string) => void;
}
