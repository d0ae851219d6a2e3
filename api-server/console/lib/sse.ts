/** One event of a `text/event-stream`. */
export interface StreamEvent {
  /** `message` unless the server named it. */
  name: string;
  data: string;
  /** The last id that was sent, to continue after. */
  id: string | undefined;
}

/** Longest event, in characters: a server that never ends one does not fill the memory. */
const LONGEST = 1_000_000;

/**
 * Reads events out of text that arrives in pieces, as the HTML standard says (`EventSource` itself sends no headers, and so no
 * API key). Pure but for what it remembers. Retry times are ignored.
 */
export class EventParser {
  #rest = "";
  #id: string | undefined;
  #name = "";
  #data: string[] = [];
  #length = 0;

  /** @throws Error for an event that is too long */
  push(piece: string): StreamEvent[] {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    const events = lines.flatMap((line) => this.#line(line));
    if (this.#rest.length + this.#length > LONGEST) {
      throw new Error("an event of the stream is too long");
    }
    return events;
  }

  #line(line: string): StreamEvent[] {
    if (line === "") {
      return this.#end();
    }
    const colon = line.indexOf(":");
    if (colon === 0) {
      return [];
    }
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      this.#name = value;
    }
    if (field === "id" && !value.includes("\0")) {
      this.#id = value;
    }
    if (field === "data") {
      this.#data.push(value);
      this.#length += value.length;
    }
    return [];
  }

  #end(): StreamEvent[] {
    const [name, data] = [this.#name, this.#data];
    this.#name = "";
    this.#data = [];
    this.#length = 0;
    if (data.length === 0) {
      return [];
    }
    return [{ name: name === "" ? "message" : name, data: data.join("\n"), id: this.#id }];
  }
}
