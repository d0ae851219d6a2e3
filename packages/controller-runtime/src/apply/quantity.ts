/** Powers of ten and of 1024 that a Kubernetes quantity may end in. */
const SUFFIXES: Record<string, readonly [bigint, bigint]> = {
  n: [1n, 1_000_000_000n],
  u: [1n, 1_000_000n],
  m: [1n, 1_000n],
  "": [1n, 1n],
  k: [10n ** 3n, 1n],
  M: [10n ** 6n, 1n],
  G: [10n ** 9n, 1n],
  T: [10n ** 12n, 1n],
  P: [10n ** 15n, 1n],
  E: [10n ** 18n, 1n],
  Ki: [1n << 10n, 1n],
  Mi: [1n << 20n, 1n],
  Gi: [1n << 30n, 1n],
  Ti: [1n << 40n, 1n],
  Pi: [1n << 50n, 1n],
  Ei: [1n << 60n, 1n],
};

const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,2})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$/;

/** A quantity in billionths, rounded up as the apiserver does; undefined when it is none. */
export function parseQuantity(value: unknown): bigint | undefined {
  if (typeof value !== "string" && typeof value !== "number") {
    return undefined;
  }
  const match = PATTERN.exec(String(value));
  if (!match) {
    return undefined;
  }
  const [, sign, whole = "", fraction = "", exponent, suffix = ""] = match;
  if (whole === "" && fraction === "") {
    return undefined;
  }
  const [multiply, divide] = SUFFIXES[suffix] ?? [1n, 1n];
  const power = BigInt(exponent ?? 0);
  const up = power > 0n ? 10n ** power : 1n;
  const down = power < 0n ? 10n ** -power : 1n;
  const numerator = BigInt(`${whole}${fraction}`) * multiply * up * 1_000_000_000n;
  const denominator = 10n ** BigInt(fraction.length) * divide * down;
  const magnitude = numerator / denominator + (numerator % denominator === 0n ? 0n : 1n);
  return sign === "-" ? -magnitude : magnitude;
}

/** Whether both are quantities of the same amount: `1000m` and `1`, `1024Mi` and `1Gi`. */
export function equalQuantities(a: unknown, b: unknown): boolean {
  const left = parseQuantity(a);
  return left !== undefined && left === parseQuantity(b);
}
