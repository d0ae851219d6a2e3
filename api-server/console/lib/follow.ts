import type { Api, Query } from "./api.ts";
import { isPassing, sleep, waitAfter } from "./poll.ts";
import type { StreamEvent } from "./sse.ts";

interface Followed {
  path: string;
  query: Query;
  /** @returns whether the stream has reported its end */
  event: (event: StreamEvent) => boolean;
  /** The stream is open, or lost and opened again after a while. */
  state: (isOpen: boolean) => void;
}

const POLL_INTERVAL_MS = 1_000;

/**
 * Reads a stream of events to its end, and continues after the last id when the connection is lost or the server has ended it without
 * saying that it is the end.
 * @throws ApiFailure that asking again does not help
 */
export async function follow(api: Api, of: Followed, signal: AbortSignal): Promise<void> {
  let after: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of openedEvents()) {
        after = event.id ?? after;
        if (of.event(event)) {
          return;
        }
      }
      of.state(false);
      await sleep(POLL_INTERVAL_MS, signal);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (!isPassing(error)) {
        throw error;
      }
      failures += 1;
      of.state(false);
      await sleep(waitAfter(failures, POLL_INTERVAL_MS, error), signal).catch(() => undefined);
    }
  }

  async function* openedEvents(): AsyncGenerator<StreamEvent> {
    for await (const event of api.events(of.path, of.query, signal, after, () => of.state(true))) {
      failures = 0;
      yield event;
    }
  }
}
