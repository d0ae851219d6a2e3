/** Kubernetes quantities, as far as plans use them. */

const FACTORS: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/**
 * CPU in thousandths of a core: `"1.5"` is 1500, `"250m"` is 250.
 * @throws when the text is no quantity
 */
export function millicores(quantity: string): number {
  const match = /^(\d+(?:\.\d+)?)(m?)$/.exec(quantity);
  if (!match) {
    throw new Error(`"${quantity}" is not a CPU quantity`);
  }
  return Math.round(Number(match[1]) * (match[2] === "m" ? 1 : 1000));
}

/**
 * Memory or storage in bytes: `"512Mi"` is 536870912.
 * @throws when the text is no quantity
 */
export function bytes(quantity: string): number {
  const match = /^(\d+(?:\.\d+)?)([kMGT]|[KMGT]i)?$/.exec(quantity);
  const factor = FACTORS[match?.[2] ?? ""];
  if (!match || factor === undefined) {
    throw new Error(`"${quantity}" is not a memory or storage quantity`);
  }
  return Math.round(Number(match[1]) * factor);
}
