import { dirname } from "node:path";
import { startSmtpServer, type TestSmtpServer } from "../../kit/servers/smtp.ts";
import { stack } from "./stack.ts";

/** The stack's operators send mails there (hack/stack/chart.ts). */
const PORT = 5_012;

export const RECIPIENTS = "/v1/organization/email-recipients";

/** Starts the server of the stack's mails, certified by the stack's authority. */
export function startMailServer(): Promise<TestSmtpServer> {
  const { hostname } = new URL(stack.git.url);
  return startSmtpServer({
    folder: dirname(stack.git.caFile),
    altNames: [`IP:${hostname}`],
    address: "0.0.0.0",
    port: PORT,
  });
}

/** The code in a mail of confirmation. */
export const codeOf = (mail: { readonly raw: string } | undefined): string | undefined =>
  /Code: (\S+)/.exec(mail?.raw ?? "")?.[1];

/** Mails of an event, which may be several where the answer to one was lost. */
export const mailsOf = ({ mails }: Pick<TestSmtpServer, "mails">, event: string) =>
  mails.filter(({ headers }) => headers["message-id"]?.startsWith(`<${event}.`));
