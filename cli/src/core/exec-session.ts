import { toSlipwayError } from "@slipway/sdk";
import { WebSocket } from "ws";
import { CliError } from "./command.ts";
import { CHANNEL, exitCodeOf, frame, SUBPROTOCOL } from "./exec-frames.ts";
import { describeFailure } from "./failures.ts";

/** Bytes of an answer in place of a session that are read. */
const LONGEST_REFUSAL = 64 * 1024;

/**
 * A session with this process's own inputs and outputs; the command's exit code.
 * @param tty the terminal is in raw mode meanwhile
 * @throws CliError when it is refused, or ends before the command
 */
export function runSession(url: string, apiKey: string, tty: boolean): Promise<number> {
  const { stdin, stdout, stderr } = process;
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, [SUBPROTOCOL], { headers: { "x-api-key": apiKey } });
    let exitCode: number | undefined;
    const resize = () =>
      socket.send(frame(CHANNEL.size, JSON.stringify({ Width: stdout.columns, Height: stdout.rows })));
    socket.on("open", () => {
      stdin.on("data", (data: Buffer) => socket.send(frame(CHANNEL.input, data)));
      stdin.on("end", () => socket.send(Buffer.of(CHANNEL.close, CHANNEL.input)));
      if (tty) {
        stdin.setRawMode(true);
        stdout.on("resize", resize);
        resize();
      }
    });
    socket.on("message", (message: Buffer) => {
      const data = message.subarray(1);
      if (message[0] === CHANNEL.output) {
        stdout.write(data);
      } else if (message[0] === CHANNEL.error) {
        stderr.write(data);
      } else if (message[0] === CHANNEL.status) {
        exitCode = exitCodeOf(data.toString());
      }
    });
    socket.on("unexpected-response", (_request, response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text = (text + chunk).slice(0, LONGEST_REFUSAL);
      });
      response.on("end", () => {
        const refusal = toSlipwayError(response.statusCode ?? 0, text);
        reject(new CliError(describeFailure(refusal).message));
      });
    });
    socket.on("error", reject);
    socket.on("close", (code, reason) => {
      if (tty) {
        stdin.setRawMode(false);
        stdout.off("resize", resize);
      }
      stdin.pause();
      if (exitCode === undefined) {
        reject(new CliError(`the session has ended before the command: ${code} ${reason.toString()}`));
      } else {
        resolve(exitCode);
      }
    });
  });
}
