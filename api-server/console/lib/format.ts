/** How values are shown. Pure; what is not known is a dash. */

const NONE = "–";

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const reais = { style: "currency", currency: "BRL", minimumFractionDigits: 2 } as const;
const money = new Intl.NumberFormat("en", { ...reais, maximumFractionDigits: 8 });
/** The nine decimals that cents have in the ledger. */
const exact = new Intl.NumberFormat("en", { ...reais, maximumFractionDigits: 11, roundingMode: "trunc" });

type Known = number | null | undefined;
const isKnown = (value: Known): value is number => typeof value === "number" && Number.isFinite(value);

/** An amount of BRL cents, of which fractions are shown: 1.5 is `R$0.015`. Text is a decimal, which is shown exactly and never rounded up. */
export function brl(cents: Known | string): string {
  if (typeof cents === "string") {
    return /^-?\d+(\.\d+)?$/.test(cents) ? exact.format(shiftTwo(cents)) : NONE;
  }
  return isKnown(cents) ? money.format(shiftTwo(String(cents))) : NONE;
}

/** Cents as reais by their digits, for a division would leave traces of binary fractions. */
function shiftTwo(cents: string): Intl.StringNumericLiteral {
  const [digits = "0", exponent = "0"] = cents.split("e");
  return `${digits}e${Number(exponent) - 2}` as Intl.StringNumericLiteral;
}

/** A whole number in full up to a million, and short above: `12,345`, `3.4M`. */
export function count(value: Known): string {
  if (!isKnown(value)) {
    return NONE;
  }
  const [unit, name] =
    value >= 1e12 ? [1e12, "T"] : value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : [1, ""];
  return `${plain.format(value / unit)}${name}`;
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size in binary units: `1.5 KiB`. */
export function bytes(value: Known): string {
  if (!isKnown(value)) {
    return NONE;
  }
  const power = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), BYTES.length - 1);
  return `${plain.format(value / 1024 ** power)} ${BYTES[power]}`;
}

/** A latency in milliseconds: `0.42 ms`, `12 ms`, `1.5 s`. */
export function milliseconds(value: Known): string {
  if (!isKnown(value)) {
    return NONE;
  }
  return value < 1_000 ? `${fine.format(value)} ms` : `${plain.format(value / 1_000)} s`;
}

/** CPU in cores, and thousandths of one below: `1.5 cores`, `250 mCPU`. */
export function cores(value: Known): string {
  if (!isKnown(value)) {
    return NONE;
  }
  if (value >= 1) {
    return `${fine.format(value)} ${value === 1 ? "core" : "cores"}`;
  }
  return value === 0 ? "0" : `${fine.format(value * 1_000)} mCPU`;
}

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in its two largest units: `1 h 5 min`, `59 s`, `0 s`. */
export function duration(seconds: Known): string {
  if (!isKnown(seconds)) {
    return NONE;
  }
  let left = Math.max(0, Math.floor(seconds));
  const parts: string[] = [];
  for (const [size, name] of UNITS) {
    const whole = Math.floor(left / size);
    // Neighbouring units only: a day and three seconds are a day.
    if (whole === 0 && parts.length > 0) {
      break;
    }
    if (whole > 0) {
      parts.push(`${whole} ${name}`);
    }
    left -= whole * size;
    if (parts.length === 2) {
      break;
    }
  }
  return parts.length === 0 ? "0 s" : parts.join(" ");
}

/** A fraction from 0 to 1 as a percentage. */
export function percent(ratio: Known): string {
  return isKnown(ratio) ? `${plain.format(ratio * 100)} %` : NONE;
}

/** How long ago a moment is: `just now`, `5 min ago`, `in 2 h`. Both in milliseconds since the epoch. */
export function ago(moment: number, now: number): string {
  const seconds = Math.round((now - moment) / 1_000);
  if (!Number.isFinite(seconds)) {
    return NONE;
  }
  if (Math.abs(seconds) < 5) {
    return "just now";
  }
  const [size, name] = UNITS.find(([one]) => Math.abs(seconds) >= one) ?? [1, "s"];
  const whole = `${Math.floor(Math.abs(seconds) / size)} ${name}`;
  return seconds > 0 ? `${whole} ago` : `in ${whole}`;
}

const two = (value: number): string => String(value).padStart(2, "0");

/** A moment as `2026-11-22 04:05:06` in the browser's time zone. */
export function dateTime(moment: Date): string {
  return `${date(moment)} ${clock(moment, true)}`;
}

export function date(moment: Date): string {
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

/** A moment as an input of type `datetime-local` has it. */
export function localDateTime(moment: Date): string {
  return `${date(moment)}T${clock(moment, true)}`;
}

/** Time of day, with seconds where they matter. */
export function clock(moment: Date, seconds = false): string {
  const minutes = `${two(moment.getHours())}:${two(moment.getMinutes())}`;
  return seconds ? `${minutes}:${two(moment.getSeconds())}` : minutes;
}

/** `deadline_exceeded` as people read it. */
export const words = (name: string): string => name.replaceAll("_", " ");
