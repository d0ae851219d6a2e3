import { isPrintable } from "./text.ts";

/** Bounds of a route: a deeper path ends in `*`, a longer segment is `:long`. */
export const MAX_ROUTE_SEGMENTS = 8;
export const MAX_SEGMENT_BYTES = 40;
export const MAX_ROUTE_BYTES = 256;

/**
 * The route of a path: the same for all paths that differ only in what names single things. Numbers become `:number`,
 * dates `:date`, UUIDs `:uuid`, hexadecimal digests `:hash`, other ids `:id`, e-mail addresses `:email`; also as parts of a
 * segment (`order-1234.json` → `order-:number.json`). What is no text once it is decoded is `:encoded`. Query and fragment
 * are dropped, repeated and last slashes too. At most {@link MAX_ROUTE_BYTES} bytes; the route of a route is itself.
 */
export function routeOf(path: string): string {
  // One more than is kept shows that there are more: a path of a megabyte is not split.
  const found = withoutQuery(path)
    .split("/", 4 * MAX_ROUTE_SEGMENTS)
    .filter((segment) => segment !== "");
  let more = found.length > MAX_ROUTE_SEGMENTS;
  const segments = (more ? found.slice(0, MAX_ROUTE_SEGMENTS - 1) : found).map(reduceSegment);
  let bytes = segments.reduce((sum, segment) => sum + 1 + Buffer.byteLength(segment), 0);
  while (bytes + (more ? 2 : 0) > MAX_ROUTE_BYTES) {
    bytes -= 1 + Buffer.byteLength(segments.pop() ?? "");
    more = true;
  }
  return `/${(more ? [...segments, "*"] : segments).join("/")}`;
}

/** A path up to its query or fragment. */
export function withoutQuery(path: string): string {
  const end = path.search(/[?#]/);
  return end < 0 ? path : path.slice(0, end);
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
/** A day, and whatever time follows it. */
const DATE = /\d{4}-\d{2}-\d{2}(?:[T_]\d{2}(?::?\d{2}){0,2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?/g;
const NUMBER = /^[+-]?\d+(?:[.,:]\d+)*$/;
/** Random characters of base64url, where what is between their joints is not a word. */
const TOKEN = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_-]{20,}$/;
const WORD = /(?:^|[-_])[A-Za-z]?[a-z]{3,}(?:[-_]|$)/;
/** What joins the parts of a segment: punctuation, and characters that are written as bytes. */
const JOINTS = /((?:%[0-9A-Fa-f]{2}|[-._~,;:=+@()!'$&])+)/;

function reduceSegment(segment: string): string {
  // Longer than any id.
  if (segment.length > 1024) {
    return ":long";
  }
  const text = decoded(segment);
  if (text === undefined) {
    return ":encoded";
  }
  if (NUMBER.test(text)) {
    return ":number";
  }
  if (isEmail(text)) {
    return ":email";
  }
  if (TOKEN.test(text) && !WORD.test(text)) {
    return ":id";
  }
  const reduced = segment
    .replace(UUID, ":uuid")
    .replace(DATE, ":date")
    .split(JOINTS)
    .map((part, index) => (index % 2 === 1 ? part.toUpperCase() : reducePart(part)))
    .join("");
  return Buffer.byteLength(reduced) > MAX_SEGMENT_BYTES ? ":long" : reduced;
}

/** One `@`, a dot inside of what follows it, no colon. Without a regular expression: one tries every dot at every dot. */
function isEmail(text: string): boolean {
  const at = text.indexOf("@");
  if (at < 1 || text.includes("@", at + 1) || text.includes(":")) {
    return false;
  }
  const dot = text.indexOf(".", at + 2);
  return dot > 0 && dot < text.length - 1;
}

/** A segment's text; undefined when its bytes are none, or none that can be shown. */
function decoded(segment: string): string | undefined {
  try {
    const text = segment.includes("%") ? decodeURIComponent(segment) : segment;
    return isPrintable(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

const HEX = /^[0-9a-f]{6,}$/i;
const COUNTED = /^(?:([A-Za-z]{2,})\d{3,}|([A-Za-z])\d{4,})$/;
const MIXED = /^[A-Za-z0-9]{6,}$/;

function reducePart(part: string): string {
  if (/^\d{3,}$/.test(part)) {
    return ":number";
  }
  if (HEX.test(part) && (/\d/.test(part) ? /[a-f]/i.test(part) : part.length >= 16)) {
    return ":hash";
  }
  const counted = COUNTED.exec(part);
  if (counted) {
    return `${counted[1] ?? counted[2]}:number`;
  }
  if (!MIXED.test(part) || !/\d/.test(part)) {
    return part;
  }
  // `oauth2callback` goes from letters to digits and back once; an id does so all the time.
  const turns = part.match(/[A-Za-z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0;
  return turns >= 3 || part.length >= 16 ? ":id" : part;
}
