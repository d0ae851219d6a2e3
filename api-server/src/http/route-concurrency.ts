import { ConcurrencyLimiter, type Release } from "@slipway/process";
import type { FastifyReply, FastifyRequest } from "fastify";
import { failures } from "../errors/catalog.ts";
import { addressGroup } from "./address.ts";
import type { Answer } from "./answer.ts";
import { onceOver } from "./once-over.ts";

/** Of the places of a route one organization may have this part while nobody else needs them: the rest are free for another. */
const SHARE = 3 / 4;
/** Of the places for answers that are taken slowly one organization has this part. */
const SLOW_SHARE = 1 / 4;
/** Answers that are made or not yet taken, of all organizations, for each call that is worked at. */
const ANSWERS_PER_PLACE = 4;
/** Calls that wait for each place: of all organizations, and of one. */
const WAITING_PER_PLACE = 32;
const WAITING_OF_ONE_PER_PLACE = 8;
/** Milliseconds that they wait: longer than the apiserver takes to answer again while a replica of ours starts beside it. */
const WAIT_MS = 10_000;
/** Milliseconds that a call whose organization has room waits for others' work. */
const WORK_WAIT_MS = 5_000;
/** Milliseconds after which an answer counts as taken slowly. */
const SLOW_MS = 2_000;

/** The places of a route that works at few calls at once, shared by organization. */
export class Places {
  /** Of answers, from the beginning of their work until they are taken. */
  readonly #answers: ConcurrencyLimiter;
  readonly #working: ConcurrencyLimiter;
  readonly #slow: ConcurrencyLimiter;

  constructor(atOnce: number) {
    const refuse = failures.serverBusy;
    const perKey = Math.max(1, Math.floor(atOnce * SHARE));
    const total = atOnce * ANSWERS_PER_PLACE;
    const waiting = atOnce * WAITING_PER_PLACE;
    const waitingPerKey = atOnce * WAITING_OF_ONE_PER_PLACE;
    this.#answers = new ConcurrencyLimiter({
      total,
      perKey,
      waiting,
      waitingPerKey,
      waitMs: WAIT_MS,
      refuse,
    });
    this.#working = new ConcurrencyLimiter({ total: atOnce, perKey, waitMs: WORK_WAIT_MS, refuse });
    this.#slow = new ConcurrencyLimiter({ total, perKey: Math.ceil(atOnce * SLOW_SHARE), refuse });
  }

  /**
   * Works in turn, and counts the answer until the client has taken it: who asks for large ones and reads none has few of them
   * in memory, and keeps no place that others work in. Of answers that are taken slowly an organization has fewer still: a
   * client beyond them is cut off. Streams have bounds of their own.
   * @throws Failure 503 when the turn does not come, or what the work throws
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
        // Nobody would read the answer.
        if (request.raw.socket?.destroyed) {
          throw failures.serverBusy();
        }
        return work();
      });
      if ("stream" in answer) {
        release();
      } else {
        this.#untilTaken(request, reply, key, release);
      }
      return answer;
    } catch (error) {
      release();
      throw error;
    }
  }

  #untilTaken(request: FastifyRequest, reply: FastifyReply, key: string, answered: Release): void {
    let release = answered;
    const slow = setTimeout(() => {
      release();
      const place = this.#slow.tryAcquire(key);
      if (place) {
        release = place;
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

/** Whose share a call takes: of the organization that sends it or whose hook it is, or of the address. */
function sharerOf({ principal, hookOrganizationId, ip }: FastifyRequest): string {
  return principal?.organizationId ?? hookOrganizationId ?? addressGroup(ip);
}
