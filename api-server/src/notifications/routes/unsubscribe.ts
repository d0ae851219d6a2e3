import { failures } from "../../errors/catalog.ts";
import type { Answer } from "../../http/exchange.ts";
import { defineRoute } from "../../http/route.ts";
import type { Services } from "../../services.ts";
import { UNSUBSCRIBE_TOKEN } from "../confirmation.ts";
import { MAX_CONCURRENT } from "./webhooks.ts";

/**
 * The link of each mail that ends notifications, for people without an account. Reading it changes nothing: mail servers read links to check
 * them. A click, and mail programs by RFC 8058, send a POST.
 */
const PATH = "/v1/email/unsubscribe/:token";
const COMMON = {
  path: PATH,
  tags: ["E-mail"],
  undocumented: true,
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
} as const;

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const page = (content: string): Answer => ({
  status: 200,
  headers: HEADERS,
  content: `<!doctype html><html lang="en"><meta charset="utf-8"><title>Notifications by e-mail</title><body>${content}</body></html>\n`,
});

/** @throws Failure 404 for what cannot be a token */
function tokenOf(params: unknown): string {
  const { token } = params as { token: string };
  if (!UNSUBSCRIBE_TOKEN.test(token)) {
    throw failures.emailTokenUnknown();
  }
  return token;
}

async function requireToken(token: string, { webhooks }: Pick<Services, "webhooks">): Promise<void> {
  if (!(await webhooks.hasUnsubscribeToken(token))) {
    throw failures.emailTokenUnknown();
  }
}

export const readUnsubscribePage = defineRoute({
  ...COMMON,
  operationId: "readUnsubscribePage",
  method: "GET",
  summary: "The page on which a recipient of e-mail unsubscribes",
  responses: { 200: { description: "The page." } },
  handler: async ({ request }, services) => {
    await requireToken(tokenOf(request.params), services);
    return page(
      '<form method="post"><p>End notifications from this organization to you?</p><button>Unsubscribe</button></form>',
    );
  },
});

export const unsubscribeEmail = defineRoute({
  ...COMMON,
  operationId: "unsubscribeEmail",
  method: "POST",
  summary: "End notifications to a recipient",
  rawBody: true,
  bodyLimit: 1_024,
  responses: { 200: { description: "Ended." } },
  handler: async ({ request }, { webhooks }) => {
    if (!(await webhooks.unsubscribe(tokenOf(request.params)))) {
      throw failures.emailTokenUnknown();
    }
    return page(
      "<p>Notifications from this organization to you have ended. It may have a code sent to you again; without that code no other notification is.</p>",
    );
  },
});
