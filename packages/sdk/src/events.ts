/** Server-sent events, as the HTML standard has them: https://html.spec.whatwg.org/multipage/server-sent-events.html */

export interface ServerEvent {
  readonly event: string;
  /** Of the last event that had one: a stream is resumed after it. */
  readonly id: string | undefined;
  readonly data: string;
}

/** Characters of one line: the API's lines of logs are far below. */
const LONGEST_LINE = 1024 * 1024;

/**
 * The events of a stream, until it ends or is left.
 * @throws RangeError for a line beyond 1 MiB, and what reading throws
 */
export async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  let event = "";
  let id: string | undefined;
  let data: string[] = [];
  for await (const line of readLines(stream)) {
    if (line === "") {
      if (data.length > 0) {
        yield { event: event === "" ? "message" : event, id, data: data.join("\n") };
      }
      event = "";
      data = [];
      continue;
    }
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") {
      event = value;
    } else if (field === "id") {
      id = value;
    } else if (field === "data") {
      data.push(value);
    }
  }
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        return;
      }
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      if (rest.length > LONGEST_LINE) {
        throw new RangeError("a line of the stream of events is too long");
      }
      yield* lines;
    }
  } finally {
    // Not awaited: a server that does not end its side must not keep the reader.
    reader.cancel().catch(() => undefined);
  }
}
