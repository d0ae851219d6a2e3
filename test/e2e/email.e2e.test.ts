/** Notifications by e-mail on the stack: a code confirms, an event arrives over TLS although the server was away, and a link ends it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestSmtpServer } from "../kit/servers/smtp.ts";
import { apiClient, uniqueName } from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { codeOf, mailsOf, RECIPIENTS, startMailServer } from "./support/mail.ts";
import { stack } from "./support/stack.ts";

/** A mailbox gets few codes in a day. */
const ADDRESS = `${uniqueName("on-call")}@example.com`;

const call = apiClient();
let server: TestSmtpServer;
let id: string | undefined;

beforeAll(async () => {
  server = await startMailServer();
});
afterAll(async () => {
  if (id) {
    await call("DELETE", `${RECIPIENTS}/${id}`);
  }
  await server?.close();
});

interface Delivery {
  readonly id: string;
  readonly status: string;
  readonly attempts: number;
}
async function delivery(event: string): Promise<Delivery | undefined> {
  const { status, body } = await call<{ deliveries: Delivery[] }>("GET", `${RECIPIENTS}/${id}/deliveries`);
  expect(status).toBe(200);
  return body.data?.deliveries.find((one) => one.id === event);
}
const requestTest = async (): Promise<string> => {
  const { status, body } = await call<{ id: string }>("POST", `${RECIPIENTS}/${id}/test`);
  expect(status).toBe(202);
  return body.data?.id ?? "";
};

test("an address confirms with the code that it was sent", async () => {
  const created = await call<{ id: string; confirmed: boolean }>("POST", RECIPIENTS, {
    email: ADDRESS,
    event_types: ["run.failed"],
  });
  expect(created.status).toBe(201);
  id = created.body.data?.id;
  expect(created.body.data?.confirmed).toBe(false);
  const mail = await eventually(async () => {
    expect(server.mails).toHaveLength(1);
    return server.mails[0];
  });
  expect(mail?.to).toEqual([ADDRESS]);
  expect(server.plain()).toBe(0);
  const code = codeOf(mail);
  const confirmed = await call<{ confirmed: boolean }>("POST", `${RECIPIENTS}/${id}/confirm`, { code });
  expect([confirmed.status, confirmed.body.data?.confirmed]).toEqual([200, true]);
});

test("a mail waits for a server that is away, and its link ends all others", async () => {
  server.refuse({ code: 451, at: "recipient" });
  const event = await requestTest();
  await eventually(async () => expect((await delivery(event))?.attempts).toBeGreaterThan(0));
  server.refuse(undefined);
  // The first pause is 5 s.
  const mail = await eventually(async () => {
    const [found] = mailsOf(server, event);
    expect(found).toBeDefined();
    return found;
  });
  await eventually(async () => expect((await delivery(event))?.status).toBe("succeeded"));
  const link = /<(\S+)>/.exec(mail?.headers["list-unsubscribe"] ?? "")?.[1] ?? "";
  const { pathname } = new URL(link);
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const clicked = await fetch(`${stack.url}${pathname}`, {
    method: "POST",
    headers,
    body: "List-Unsubscribe=One-Click",
  });
  expect(clicked.status).toBe(200);
  expect((await call("POST", `${RECIPIENTS}/${id}/test`)).status).toBe(409);
});
