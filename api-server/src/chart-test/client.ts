/** An answer of `/v1`. Status 0: there was none, and `message` says why. */
export interface Answer<T = unknown> {
  status: number;
  message: string;
  code?: string;
  data?: T;
}

/** Calls `/v1` with one API key; never rejects, and retries nothing. */
export type Call = <T = unknown>(
  method: "GET" | "POST" | "DELETE",
  path: string,
  options?: { body?: unknown; idempotencyKey?: string },
) => Promise<Answer<T>>;

/** Until a read is answered; short, for packets are dropped until a new pod's NetworkPolicy is enforced. Milliseconds. */
const READ_MS = 5_000;
/** A write may wait for the operator, up to 25 s. */
const WRITE_MS = 40_000;

/** A client of the API at this base address. */
export function createClient(url: string, apiKey: string): Call {
  return async <T>(
    method: string,
    path: string,
    { body, idempotencyKey }: { body?: unknown; idempotencyKey?: string } = {},
  ): Promise<Answer<T>> => {
    try {
      const response = await fetch(new URL(path, url), {
        method,
        headers: {
          "x-api-key": apiKey,
          "user-agent": "slipway-chart-test",
          ...(idempotencyKey ? { "idempotency-key": idempotencyKey } : {}),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(method === "GET" ? READ_MS : WRITE_MS),
      });
      return readAnswer<T>(response.status, await response.text());
    } catch (error) {
      const { message, cause } = error as Error;
      return { status: 0, message: cause instanceof Error ? cause.message : message };
    }
  };
}

/** What a body says. One that is no JSON is not the API's, but that of something in front of it. */
export function readAnswer<T>(status: number, text: string): Answer<T> {
  try {
    const { message = "", code, data } = JSON.parse(text) as Partial<Answer<T>>;
    return {
      status,
      message,
      ...(code === undefined ? {} : { code }),
      ...(data === undefined ? {} : { data }),
    };
  } catch {
    return { status, message: `no answer of the API: ${text.trim().slice(0, 100)}` };
  }
}

/** Whether the same request may be answered otherwise in a moment. */
export function isTransient({ status }: Answer): boolean {
  return status === 0 || status === 429 || status >= 500;
}
