/** Takes secrets out of text: as they are, and in the forms that programs like to print them in. */

import { stripVTControlCharacters } from "node:util";

/** What replaces them. */
export const MASK = "***";

/** Shorter values are not searched for: they would take every second number out of the log. */
const MIN_LENGTH = 6;
/** Words that are settings rather than secrets, in any variable. */
const WORDS = new Set([
  "production",
  "development",
  "staging",
  "enabled",
  "disabled",
  "localhost",
  "default",
  "verbose",
  "warning",
]);

export interface Secrets {
  /** Values of the project's variables: short ones and well-known words are left. */
  values?: readonly string[];
  /** Credentials of the platform: always taken out. */
  credentials?: readonly string[];
}

export class Redactor {
  /** Longest first, so that a secret within a secret leaves nothing of it. */
  readonly #patterns: string[];

  constructor({ values = [], credentials = [] }: Secrets) {
    const secrets = [
      ...values.filter((value) => value.length >= MIN_LENGTH && !WORDS.has(value)),
      ...credentials.filter((value) => value.length >= 4),
    ];
    const patterns = new Set(secrets.flatMap(forms));
    this.#patterns = [...patterns].toSorted((a, b) => b.length - a.length);
  }

  /** Length of the longest text that is searched for, in UTF-16 units. */
  get longest(): number {
    return this.#patterns[0]?.length ?? 0;
  }

  /** The text with every secret masked; what overlaps is masked as one. */
  redact(text: string): string {
    const found = this.#find(text);
    let out = "";
    let from = 0;
    for (const { start, end } of found) {
      out += text.slice(from, start) + MASK;
      from = end;
    }
    return out + text.slice(from);
  }

  /** The last place at or before the one given that lies in no secret: what is before it can be written. */
  cutBefore(text: string, place: number): number {
    const around = this.#find(text).find(({ start, end }) => start < place && place < end);
    return around === undefined ? place : around.start;
  }

  #find(text: string): { start: number; end: number }[] {
    const spans: { start: number; end: number }[] = [];
    for (const pattern of this.#patterns) {
      if (pattern.length > text.length) {
        continue;
      }
      for (let at = text.indexOf(pattern); at !== -1; at = text.indexOf(pattern, at + 1)) {
        spans.push({ start: at, end: at + pattern.length });
      }
    }
    spans.sort((a, b) => a.start - b.start || b.end - a.end);
    const merged: { start: number; end: number }[] = [];
    for (const span of spans) {
      const last = merged.at(-1);
      if (last !== undefined && span.start < last.end) {
        last.end = Math.max(last.end, span.end);
      } else {
        merged.push({ ...span });
      }
    }
    return merged;
  }
}

/** A secret of several lines is printed line by line, and each line is redacted for itself. */
function forms(secret: string): string[] {
  const lines = secret.split(/[\r\n]+/).filter((line) => line.trim().length >= MIN_LENGTH);
  const texts = secret.includes("\n") || secret.includes("\r") ? [secret, ...lines] : [secret];
  return [...new Set(texts.flatMap(encodings))].filter((form) => form.length >= 4 && form.trim() !== "");
}

function encodings(text: string): string[] {
  const bytes = Buffer.from(text, "utf8");
  const json = JSON.stringify(text).slice(1, -1);
  // How tools print: as it is, without surrounding blanks, in JSON, in a URL, in hexadecimal, in base64.
  return [
    text,
    text.trim(),
    // The log has no control characters.
    stripControlCharacters(text),
    json,
    JSON.stringify(json).slice(1, -1),
    ...urlForms(text),
    bytes.toString("hex"),
    bytes.toString("hex").toUpperCase(),
    ...base64Forms(bytes),
  ];
}

function urlForms(text: string): string[] {
  const encoded = encodeURIComponent(text);
  const strict = encoded.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  const lower = (form: string): string => form.replace(/%[0-9A-F]{2}/g, (sign) => sign.toLowerCase());
  const plus = (form: string): string => form.replaceAll("%20", "+");
  return [encoded, strict, lower(encoded), lower(strict), plus(encoded), plus(strict)];
}

/** Base64 depends on what is before: three forms, each without the characters at its ends that others share in. */
function base64Forms(bytes: Buffer): string[] {
  const found = [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
    const encoded = padded.replace(/=+$/, "");
    const skip = [0, 2, 3][offset] ?? 0;
    const tail = (offset + bytes.length) % 3 === 0 ? 0 : 1;
    const middle = encoded.slice(skip, encoded.length - tail);
    // Where nothing comes after it, the end is its own.
    const last = tail === 0 ? [] : [padded.slice(skip), encoded.slice(skip)];
    // Tools that wrap do so after 64 or 76 characters.
    const wrapped =
      offset === 0 ? [64, 76].flatMap((width) => (middle.length > width ? split(middle, width) : [])) : [];
    return [...last, middle, ...wrapped];
  });
  const url = found.map((form) => form.replaceAll("+", "-").replaceAll("/", "_"));
  return [...found, ...url].filter((form) => form.length >= MIN_LENGTH);
}

function split(text: string, width: number): string[] {
  return Array.from({ length: Math.ceil(text.length / width) }, (_, index) =>
    text.slice(index * width, (index + 1) * width),
  );
}

/** Removes colours and control characters, which could also split a secret. Tabs and line feeds stay. Pure. */
export function stripControlCharacters(text: string): string {
  return (
    stripVTControlCharacters(text)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are removed
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "")
      .toWellFormed()
  );
}
