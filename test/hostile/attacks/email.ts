import { CONFIRMATION_LIMITS } from "@slipway/ledger";
import type { Attack } from "../attack.ts";
import { calls } from "../calls.ts";
import { projectsOf } from "../projects.ts";

const RECIPIENTS = "/v1/organization/email-recipients";
/** No more mails to strangers than an organization may request in an hour. */
const BOUNDED = "confirmation mails within the bound";

/** What is no single address. */
const hostile = [
  "victim@example.com\r\nBcc: all@example.com",
  "victim@example.com,other@example.com",
  '"victim other"@example.com',
  "Victim <victim@example.com>",
];

export const email: Attack = {
  name: "email",
  about:
    "four clients that request mails to strangers as often as they may, under many addresses and forms, guess codes, and try links that end mail",
  seconds: 15,
  expected: ["200", "201", "202", "400", "404", "409", "429", "503", BOUNDED],
  required: ["400", "409", BOUNDED],
  async prepare({ url, organizations: [attacker] }) {
    const own = projectsOf(attacker);
    const body = { email: "first@hostile.example", event_types: ["run.failed"] };
    const first = await own.call<{ id: string }>("POST", RECIPIENTS, body);
    const id = first.body.data?.id ?? "";
    const headers = { "x-api-key": attacker.api_key };
    type Recipients = { recipients: { id: string }[] };
    return {
      run: async (signal) => {
        const answers = await calls(
          {
            url,
            concurrency: 4,
            count: 2_000,
            next: (index) => {
              const address = hostile[index % hostile.length] ?? "";
              const choices = [
                {
                  method: "POST",
                  path: RECIPIENTS,
                  headers,
                  body: { ...body, email: `v${index}@hostile.example` },
                },
                {
                  method: "POST",
                  path: RECIPIENTS,
                  headers,
                  body: { ...body, email: `victim+${index}@hostile.example` },
                },
                { method: "POST", path: RECIPIENTS, headers, body: { ...body, email: address } },
                { method: "POST", path: `${RECIPIENTS}/${id}/send-confirmation`, headers },
                {
                  method: "POST",
                  path: `${RECIPIENTS}/${id}/confirm`,
                  headers,
                  body: { code: "2222-2222" },
                },
                { method: "POST", path: `/v1/email/unsubscribe/${"t".repeat(32)}`, headers: {} },
              ] as const;
              return choices[index % choices.length] ?? choices[0];
            },
          },
          signal,
        );
        const sent = (answers["201"] ?? 0) + (answers["202"] ?? 0);
        return { ...answers, ...(sent <= CONFIRMATION_LIMITS.perOrganizationHour ? { [BOUNDED]: 1 } : {}) };
      },
      clean: async () => {
        const { body: all } = await own.call<Recipients>("GET", RECIPIENTS);
        for (const recipient of all.data?.recipients ?? []) {
          await own.call("DELETE", `${RECIPIENTS}/${recipient.id}`);
        }
      },
    };
  },
};
