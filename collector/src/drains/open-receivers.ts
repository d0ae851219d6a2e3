import type { LogDrain } from "@slipway/crds";
import type { Drain } from "./drain.ts";
import type { Receiver } from "./receiver.ts";

/** Milliseconds after which a receiver is opened again, with the Secret as it is then. */
const REOPEN_MS = 60_000;

interface Open {
  receiver: Receiver;
  generation: number | undefined;
  openedAt: number;
}

/** The receivers of drains, each opened with what its drain is configured with. */
export class OpenReceivers {
  readonly #open = new Map<string, Open>();
  readonly #create: (drain: LogDrain) => Promise<Receiver>;
  readonly #monotonic: () => number;

  /** @param create throws DeliveryError for what a drain is configured with */
  constructor(create: (drain: LogDrain) => Promise<Receiver>, monotonic: () => number) {
    this.#create = create;
    this.#monotonic = monotonic;
  }

  /** @throws DeliveryError for what the drain is configured with; the reason of its signal once it is deleted */
  async of(drain: Drain): Promise<Receiver> {
    const { generation } = drain.resource.metadata;
    const open = this.#open.get(drain.uid);
    if (open && open.generation === generation && this.#monotonic() - open.openedAt < REOPEN_MS) {
      return open.receiver;
    }
    this.close(drain.uid);
    const receiver = await this.#create(drain.resource);
    if (drain.signal.aborted) {
      receiver.close();
      throw drain.signal.reason;
    }
    drain.readiness = "configured";
    this.#open.set(drain.uid, { receiver, generation, openedAt: this.#monotonic() });
    return receiver;
  }

  close(uid: string): void {
    this.#open.get(uid)?.receiver.close();
    this.#open.delete(uid);
  }

  closeAll(): void {
    for (const uid of [...this.#open.keys()]) {
      this.close(uid);
    }
  }
}
