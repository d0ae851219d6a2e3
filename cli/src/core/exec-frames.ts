/** The protocol of commands in instances, `v5.channel.k8s.io`: each message's first byte is its channel. Pure. */

export const SUBPROTOCOL = "v5.channel.k8s.io";
export const CHANNEL = { input: 0, output: 1, error: 2, status: 3, size: 4, close: 255 } as const;

/** Exit code of a command that could not be started, or whose session was lost. */
const NO_EXIT_CODE = 126;

/** The address of a session. */
export function execUrl(
  base: string,
  id: string,
  instance: string,
  { command, tty }: { command: readonly string[]; tty: boolean },
): string {
  const path = `/v1/project/${encodeURIComponent(id)}/instances/${encodeURIComponent(instance)}/exec`;
  const url = new URL(base.replace(/\/+$/, "") + path);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  for (const word of command) {
    url.searchParams.append("command", word);
  }
  url.searchParams.set("stdin", "true");
  url.searchParams.set("tty", String(tty));
  return url.href;
}

/** A message of the client. */
export const frame = (channel: number, data: Uint8Array | string): Buffer =>
  Buffer.concat([Buffer.of(channel), Buffer.from(data as Uint8Array)]);

interface Status {
  readonly status?: string;
  readonly details?: { readonly causes?: readonly { reason?: string; message?: string }[] };
}

/** The exit code of a command's `metav1.Status`. */
export function exitCodeOf(text: string): number {
  const { status, details } = JSON.parse(text) as Status;
  const code = details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
  return status === "Success" ? 0 : Number(code ?? NO_EXIT_CODE);
}
