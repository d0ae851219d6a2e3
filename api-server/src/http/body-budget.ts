import { ConcurrencyLimiter, type Release } from "@slipway/process";
import type { FastifyRequest } from "fastify";
import { failures } from "../errors/catalog.ts";
import { addressGroup, type Hook, onceOver } from "./exchange.ts";

const MIB = 1024 * 1024;
/** Bytes of the largest body of a route that does not say otherwise. */
export const DEFAULT_BODY_LIMIT = MIB;
/** Bytes of a body that counts as small. */
const SMALL_BYTES = 64 * 1024;
/** Milliseconds that a request waits for the budget, before its body is read. */
const WAIT_MS = 2_000;

/** Bytes of bodies that are in memory, or may come, until they are answered. A parsed body takes a few times its size. */
export interface BodyBudgets {
  /** Of callers with a credential, by organization: the largest body of one fits into its share. */
  large: ConcurrencyLimiter;
  /** The same for bodies as most are: an organization's own slow uploads do not refuse them. */
  small: ConcurrencyLimiter;
  /** Of deliveries of hooks, by the organization whose connection they name: a Git server's address is that of many. */
  hooks: ConcurrencyLimiter;
  /** Of webhooks of payments, by address: who sends other bodies without a credential keeps none of them waiting. */
  payments: ConcurrencyLimiter;
  /** Of all other callers, by address. */
  anonymous: ConcurrencyLimiter;
}

/** A budget that a route has to itself. */
export type OwnBodies = "payments";

export function bodyBudgets(): BodyBudgets {
  const bounds = { waiting: 128, waitingPerKey: 16, waitMs: WAIT_MS, refuse: failures.serverBusy };
  return {
    large: new ConcurrencyLimiter({ ...bounds, total: 64 * MIB, perKey: 12 * MIB }),
    small: new ConcurrencyLimiter({ ...bounds, total: 16 * MIB, perKey: 2 * MIB }),
    hooks: new ConcurrencyLimiter({ ...bounds, total: 16 * MIB, perKey: 4 * MIB }),
    payments: new ConcurrencyLimiter({ ...bounds, total: 16 * MIB, perKey: 4 * MIB }),
    anonymous: new ConcurrencyLimiter({ ...bounds, total: 16 * MIB, perKey: 4 * MIB }),
  };
}

/** The bytes that a body may have: as announced, or the limit when it is sent in chunks. */
function announcedBytes({ headers }: FastifyRequest, limit: number): number {
  return headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : limit;
}

/**
 * Reserves the bytes of a body before it is read. They are released when the handler is done ({@link withReservation}), or once the answer is
 * sent or the client has disconnected where no handler ran.
 */
export function reserveBody(budgets: BodyBudgets, limit: number, own?: OwnBodies): Hook {
  return (request, reply, done) => {
    const bytes = announcedBytes(request, limit);
    // More than the limit is refused without being read.
    if (!(bytes > 0) || bytes > limit) {
      return done();
    }
    const take = (release: Release): void => {
      // Disconnected while it waited: nothing is read or answered.
      if (request.raw.socket?.destroyed) {
        release();
        return;
      }
      const reservation: BodyReservation = { handled: false, release };
      request.bodyReservation = reservation;
      onceOver(request, reply, () => {
        if (!reservation.handled) {
          release();
        }
      });
      done();
    };
    const [budget, key] = budgetOf(budgets, request, bytes, own);
    const now = budget.tryAcquire(key, bytes);
    if (now) {
      take(now);
    } else {
      budget.acquire(key, bytes).then(take, done);
    }
  };
}

/** The budget that a body counts against, and the key of its share. */
function budgetOf(
  budgets: BodyBudgets,
  { principal, hookOrganizationId, ip }: FastifyRequest,
  bytes: number,
  own: OwnBodies | undefined,
): [ConcurrencyLimiter, string] {
  if (own !== undefined) {
    return [budgets[own], addressGroup(ip)];
  }
  if (principal) {
    return [bytes > SMALL_BYTES ? budgets.large : budgets.small, principal.organizationId];
  }
  if (hookOrganizationId !== undefined) {
    return [budgets.hooks, hookOrganizationId];
  }
  return [budgets.anonymous, addressGroup(ip)];
}

/** The bytes reserved for a request's body. */
export interface BodyReservation {
  /** Whether the handler has started, and releases them when it is done. */
  handled: boolean;
  release: Release;
}

/** Runs a handler, and releases the reservation after it: also when the client has disconnected, since the work continues. */
export async function withReservation<T>(
  reservation: BodyReservation,
  work: () => T | Promise<T>,
): Promise<T> {
  reservation.handled = true;
  try {
    return await work();
  } finally {
    reservation.release();
  }
}
