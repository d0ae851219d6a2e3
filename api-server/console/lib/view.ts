import type { Api } from "./api.ts";
import { replace } from "./dom.ts";
import { isPassing, poll } from "./poll.ts";
import { failed, loading, outdated } from "./states.ts";

/** The context of a view. The signal is aborted when another view is opened. */
export interface Context {
  api: Api;
  signal: AbortSignal;
}

interface Refreshed<Value> {
  intervalMs: number;
  load: () => Promise<Value>;
  /** What to show; rendered again only when the value changes. */
  show: (value: Value) => Node | readonly Node[];
  /** Whether the value will not change any more. */
  isFinal?: (value: Value) => boolean;
}

/** Fills an element with the loaded value, and keeps it current: loading, the value, or why there is none. */
export function refreshed<Value>(
  place: Element,
  of: Refreshed<Value>,
  { signal }: Pick<Context, "signal">,
): void {
  let shown: string | undefined;
  let isOutdated = false;
  replace(place, loading());
  void poll(
    {
      intervalMs: of.intervalMs,
      load: of.load,
      show: (value) => {
        const text = JSON.stringify(value);
        if (text !== shown || isOutdated) {
          replace(place, of.show(value));
        }
        shown = text;
        isOutdated = false;
        return of.isFinal?.(value);
      },
      fail: (error) => {
        // The last value stays during a temporary failure.
        if (shown === undefined || !isPassing(error)) {
          shown = undefined;
          replace(place, failed(error, isPassing(error)));
        } else if (!isOutdated) {
          isOutdated = true;
          place.prepend(outdated());
        }
      },
    },
    signal,
  );
}
