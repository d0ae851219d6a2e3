import { ConcurrencyLimiter, type Release } from "@slipway/process";
import type { FastifyReply, FastifyRequest } from "fastify";
import { failures } from "../errors/catalog.ts";
import { type Answer, addressGroup, onceOver } from "./exchange.ts";

/** Part of a route's concurrency that one organization may use; the rest stays free for others. */
const SHARE = 3 / 4;
/** Part of it that one organization may use for answers that its clients read slowly. */
const SLOW_SHARE = 1 / 4;
/** Answers in memory, in work or not yet read by their clients, of all organizations, for each call in work. */
const ANSWERS_PER_CALL = 4;
/** Calls that wait, for each call in work: of all organizations, and of one. */
const WAITING_PER_CALL = 32;
const WAITING_OF_ONE_PER_CALL = 8;
/** Milliseconds that they wait: longer than the apiserver takes to answer again while a replica of ours starts beside it. */
const WAIT_MS = 10_000;
/** Milliseconds that a call within its organization's share waits for others' work. */
const WORK_WAIT_MS = 5_000;
/** Milliseconds after which an answer counts as read slowly. */
const SLOW_MS = 2_000;

/** Limits how many calls of a route run concurrently in this process, with a share for each organization. */
export class RouteConcurrency {
  /** Answers, from the beginning of their work until the client has read them. */
  readonly #answers: ConcurrencyLimiter;
  readonly #working: ConcurrencyLimiter;
  readonly #slow: ConcurrencyLimiter;

  constructor(maxConcurrent: number) {
    const refuse = failures.serverBusy;
    const perKey = Math.max(1, Math.floor(maxConcurrent * SHARE));
    const total = maxConcurrent * ANSWERS_PER_CALL;
    const waiting = maxConcurrent * WAITING_PER_CALL;
    const waitingPerKey = maxConcurrent * WAITING_OF_ONE_PER_CALL;
    this.#answers = new ConcurrencyLimiter({
      total,
      perKey,
      waiting,
      waitingPerKey,
      waitMs: WAIT_MS,
      refuse,
    });
    this.#working = new ConcurrencyLimiter({ total: maxConcurrent, perKey, waitMs: WORK_WAIT_MS, refuse });
    this.#slow = new ConcurrencyLimiter({ total, perKey: Math.ceil(maxConcurrent * SLOW_SHARE), refuse });
  }

  /**
   * Runs a call within the limits, and counts its answer until the client has read it: a client that requests large answers
   * and reads none has few of them in memory, and keeps no other call from running. Of answers that are read slowly an
   * organization has fewer still: a client beyond them is disconnected. Streams have limits of their own.
   * @throws Failure 503 when the call waits too long, or what the work throws
   */
  async run(
    request: FastifyRequest,
    reply: FastifyReply,
    work: () => Answer | Promise<Answer>,
  ): Promise<Answer> {
    const key = sharerOf(request);
    const release = await this.#answers.acquire(key);
    try {
      const answer = await this.#working.run(key, () => {
        // The client has disconnected while the call waited.
        if (request.raw.socket?.destroyed) {
          throw failures.serverBusy();
        }
        return work();
      });
      if ("stream" in answer) {
        release();
      } else {
        this.#releaseOnceRead(request, reply, key, release);
      }
      return answer;
    } catch (error) {
      release();
      throw error;
    }
  }

  #releaseOnceRead(request: FastifyRequest, reply: FastifyReply, key: string, releaseAnswer: Release): void {
    let release = releaseAnswer;
    const slow = setTimeout(() => {
      release();
      const acquired = this.#slow.tryAcquire(key);
      if (acquired) {
        release = acquired;
      } else {
        request.raw.socket.destroy();
      }
    }, SLOW_MS);
    onceOver(request, reply, () => {
      clearTimeout(slow);
      release();
    });
  }
}

/** The key of the share that a call uses: the organization that sends it or that its webhook belongs to, or the address. */
function sharerOf({ principal, hookOrganizationId, ip }: FastifyRequest): string {
  return principal?.organizationId ?? hookOrganizationId ?? addressGroup(ip);
}
