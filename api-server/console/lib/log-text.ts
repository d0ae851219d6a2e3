// biome-ignore-all lint/suspicious/noControlCharactersInRegex: they are what is searched for

/** Sequences of a terminal: colours and movements (CSI), titles and links (OSC), and the short ones. */
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
/** Characters that are invisible or disguise text: controls but tab, and those that change the writing direction. */
const UNSEEN = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * A line of a log as it may be shown: without colours, and with a mark for each character that would not be seen.
 * Pure. It escapes no HTML: text only ever becomes text nodes.
 */
export function visible(line: string): string {
  return line.replace(TERMINAL, "").replace(/\r$/, "").replace(UNSEEN, "\ufffd");
}

/**
 * What of the newest lines of a log was not there before: those after the longest end of the earlier ones with which the newer
 * ones begin. Pure. Where nothing overlaps all of them are new.
 */
export function newLines(before: readonly string[], now: readonly string[]): readonly string[] {
  for (let shared = Math.min(before.length, now.length); shared > 0; shared -= 1) {
    const start = before.length - shared;
    let same = 0;
    while (same < shared && before[start + same] === now[same]) {
      same += 1;
    }
    if (same === shared) {
      return now.slice(shared);
    }
  }
  return now;
}
