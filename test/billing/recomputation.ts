/**
 * Computes charges a second time, from docs/billing.md alone: nothing of the platform's code is used, and questions are asked of instants where that code
 * goes through times. Slow, and meant to be read beside the page.
 */

/** A project's history, in the words of the page. Instants are milliseconds. */
export interface History {
  changes: readonly Change[];
  deletedAt?: number;
}

interface Change {
  at: number;
  plan: string;
  paymentMode: "hourly" | "monthly" | "yearly";
  renews: boolean;
  instances: number;
  paused: boolean;
  billedGb: number;
}

interface Prices {
  from: number;
  gbHour: string;
  resources?: { readonly buildMinute?: string };
  plans: Readonly<
    Record<string, { hourly: string; monthly: string; yearly: string; refund: "none" | "prorated" }>
  >;
}

interface Contract {
  plan: string;
  mode: "monthly" | "yearly";
  begins: number;
  ends: number;
  /** Where it was ended before that. */
  ended?: number;
  chain: { began: number; terms: number };
}

const HOUR = 60 * 60 * 1000;
/** Amounts are counted in 10^-18 cents. */
const ONE = 10n ** 18n;

/** Amounts by key, in 10^-18 cents; for hours those that share an instant with a time alone. */
export function recompute(
  { changes, deletedAt = Number.POSITIVE_INFINITY }: History,
  prices: readonly Prices[],
  { knownUntil, hoursFrom }: { knownUntil: number; hoursFrom: number },
): Map<string, bigint> {
  const origin = changes[0]?.at ?? 0;
  const isDeleted = deletedAt < knownUntil;
  const end = Math.min(deletedAt, knownUntil);
  const stateAt = (at: number): Change | undefined =>
    at < end ? changes.filter((change) => change.at <= at).at(-1) : undefined;
  const existsAt = (instance: number, at: number): boolean => {
    const state = stateAt(at);
    return state !== undefined && !state.paused && instance < state.instances;
  };
  const result = new Map<string, bigint>();
  const put = (key: string, amount: bigint) => amount > 0n && result.set(key, amount);

  const instances = Math.max(0, ...changes.map((change) => change.instances));
  const contracts = Array.from({ length: instances }, (_, instance) => {
    const concluded = contractsOf(instance);
    for (const { plan, mode, begins, ends, ended } of concluded) {
      const { [mode]: price, refund } = pricesOf(prices, plan, begins);
      put(`term/${begins}/${instance}`, cents(price));
      const isOver = ended === undefined && ends <= end;
      const stopped = ended ?? (isDeleted && !isOver && refund === "prorated" ? deletedAt : undefined);
      if (stopped !== undefined) {
        const seconds = BigInt(Math.floor((ends - stopped) / 1000));
        const exact = (cents(price) * seconds * 1000n) / BigInt(ends - begins);
        put(`credit/${begins}/${instance}`, exact - (exact % 10n ** 9n));
      }
    }
    return concluded;
  });

  const first = Math.max(0, Math.floor((hoursFrom - origin) / HOUR) - 1);
  for (let hour = first; origin + hour * HOUR < end; hour += 1) {
    const [from, to] = [origin + hour * HOUR, Math.min(end, origin + (hour + 1) * HOUR)];
    // Between two of these nothing changes.
    const turns = [
      from,
      ...changes.map(({ at }) => at),
      ...contracts.flat().flatMap(({ begins, ends, ended }) => [begins, ended ?? ends]),
    ].filter((at) => from <= at && at < to);
    const gb = Math.max(...turns.map((at) => stateAt(at)?.billedGb ?? 0));
    put(`storage_hour/${hour}`, BigInt(gb) * cents(gbPrice(prices, from)));
    for (const [instance, concluded] of contracts.entries()) {
      const dear = turns
        .filter((at) => existsAt(instance, at))
        .filter((at) => !concluded.some(({ begins, ends, ended }) => begins <= at && at < (ended ?? ends)))
        .map((at) => cents(pricesOf(prices, stateAt(at)?.plan ?? "", from).hourly));
      put(
        `instance_hour/${hour}/${instance}`,
        dear.reduce((most, price) => (price > most ? price : most), 0n),
      );
    }
  }
  return result;

  /** All contracts of an instance, in their order. */
  function contractsOf(instance: number): Contract[] {
    const all: Contract[] = [];
    const times = [...new Set(changes.map(({ at }) => at))];
    let at: number | undefined = times[0];
    while (at !== undefined && at < end) {
      decide(instance, at, all);
      const last = all.at(-1);
      const later = [...times, ...(last !== undefined && last.ended === undefined ? [last.ends] : [])];
      const now: number = at;
      at = later.filter((each) => each > now).sort((a, b) => a - b)[0];
    }
    return all;
  }

  /** What happens to an instance's contracts at an instant. */
  function decide(instance: number, at: number, all: Contract[]): void {
    const state = stateAt(at);
    const last = all.at(-1);
    if (state === undefined || !existsAt(instance, at)) {
      return;
    }
    const { plan, paymentMode: mode } = state;
    if (last !== undefined && at < last.ends) {
      const isLonger = last.mode === "monthly" && mode === "yearly";
      if (last.plan !== plan || isLonger) {
        last.ended = at;
        conclude(all, plan, last.mode === "yearly" || mode === "yearly" ? "yearly" : "monthly", at);
      }
      return;
    }
    if (mode === "hourly") {
      return;
    }
    if (last !== undefined) {
      const then = stateAt(last.ends);
      const since = changes.filter((change) => change.at > last.ends && change.at <= at);
      const isChanged = since.some((change) =>
        change !== effectiveAt(change.at)
          ? false
          : change.plan !== then?.plan ||
            change.paymentMode !== then.paymentMode ||
            change.renews !== then.renews,
      );
      if (then?.renews === false && !isChanged) {
        return;
      }
      if (at === last.ends && last.plan === plan && last.mode === mode) {
        conclude(all, plan, mode, at, last);
        return;
      }
    }
    conclude(all, plan, mode, at);
  }

  /** Of several changes at one instant the last one. */
  function effectiveAt(at: number): Change | undefined {
    return changes.filter((change) => change.at === at).at(-1);
  }
}

function conclude(all: Contract[], plan: string, mode: "monthly" | "yearly", at: number, renewed?: Contract) {
  const chain = renewed
    ? { began: renewed.chain.began, terms: renewed.chain.terms + 1 }
    : { began: at, terms: 1 };
  const ends = sameDayLater(chain.began, chain.terms * (mode === "yearly" ? 12 : 1));
  all.push({ plan, mode, begins: at, ends, chain });
}

/** The same day of the month, so many months later; or the last day before it that there is. */
function sameDayLater(began: number, months: number): number {
  const [date = "", time = ""] = new Date(began).toISOString().split("T");
  const [year = 0, month = 0, day = 0] = date.split("-").map(Number);
  const count = year * 12 + (month - 1) + months;
  const [thenYear, thenMonth] = [Math.floor(count / 12), (count % 12) + 1];
  const isLeap = (thenYear % 4 === 0 && thenYear % 100 !== 0) || thenYear % 400 === 0;
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][thenMonth - 1] ?? 0;
  const two = (value: number): string => `${value}`.padStart(2, "0");
  return Date.parse(`${thenYear}-${two(thenMonth)}-${two(Math.min(day, days))}T${time}`);
}

function pricesOf(prices: readonly Prices[], plan: string, at: number): Prices["plans"][string] {
  const having = prices.filter(({ plans }) => plans[plan] !== undefined);
  const found = having.filter(({ from }) => from <= at).at(-1) ?? having[0];
  return found?.plans[plan] as Prices["plans"][string];
}

function gbPrice(prices: readonly Prices[], at: number): string {
  return (prices.filter(({ from }) => from <= at).at(-1) ?? prices[0])?.gbHour ?? "0";
}

/** Amounts of builds by id, in 10^-18 cents. */
export function recomputeBuilds(
  builds: readonly { id: string; began: number; ended: number; code?: string | undefined }[],
  prices: readonly Prices[],
): Map<string, bigint> {
  const amounts = builds.map(({ id, began, ended, code }): [string, bigint] => {
    const price = cents(prices.filter(({ from }) => from <= began).at(-1)?.resources?.buildMinute ?? "0");
    if (code === "BUILD_ENGINE_FAILED" || code === "PROJECT_PUBLISH_FAILED") {
      return [id, 0n];
    }
    let minutes = 1;
    while (minutes < 1440 && began + minutes * 60 * 1000 < ended) {
      minutes += 1;
    }
    return [id, price * BigInt(minutes)];
  });
  return new Map(amounts.filter(([, amount]) => amount > 0n));
}

/** A decimal of cents with at most 18 decimals. */
export function cents(decimal: string): bigint {
  const [whole = "", fraction = ""] = decimal.split(".");
  return BigInt(whole) * ONE + BigInt(fraction.padEnd(18, "0"));
}
