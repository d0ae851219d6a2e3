/** A process of the platform, as it is observed. Pure. */

/** A container of a pod. */
export interface Process {
  /** `pod/container`. */
  readonly name: string;
  readonly restarts: number;
  /** Why it ended last, such as OOMKilled. */
  readonly lastEnd?: string;
  /** Bytes; undefined when it has no limit. */
  readonly memoryLimit?: number;
  /** Most bytes in use since the last call of `Observer.take`, without cache that can be dropped. */
  readonly memoryPeak: number;
}

const units: Readonly<Record<string, number>> = {
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  k: 1e3,
  M: 1e6,
  G: 1e9,
};

/** Bytes of a quantity of Kubernetes, such as `512Mi`. Pure. */
export function bytesOf(quantity: string): number {
  const [, number = "", unit = ""] = /^([0-9.]+)([A-Za-z]*)$/.exec(quantity) ?? [];
  return Number(number) * (unit === "" ? 1 : (units[unit] ?? Number.NaN));
}
