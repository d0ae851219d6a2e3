import { readFileSync } from "node:fs";
import {
  createEmailRecipientBody,
  createWebhookBody,
  eventTypes,
  patchEmailRecipientBody,
  patchWebhookBody,
} from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { changeBody, creationBody, type ReceiverForm, receiverStatus } from "../../console/lib/receivers.ts";
import type { Receiver } from "../../console/lib/shapes.ts";
import { consoleFiles } from "./routes.ts";

const form: ReceiverForm = {
  address: " https://hooks.example.com/x ",
  description: "",
  types: ["run.failed"],
  projects: "p4k8z1m6x0c3v9b2n7q5, p4k8z1m6x0c3v9b2n7q5  p5k8z1m6x0c3v9b2n7q5",
  isEnabled: true,
};

describe("a form", () => {
  it("offers the API's types of events, which the page names", () => {
    expect(consoleFiles().page.content.toString()).toContain(
      `<meta name="event-types" content="${eventTypes.join(" ")}">`,
    );
    expect(readFileSync(new URL("../../console/views/receiver-form.ts", import.meta.url), "utf8")).toContain(
      'meta[name="event-types"]',
    );
  });

  it("becomes what the API takes", () => {
    const created = creationBody("webhooks", form);
    expect(createWebhookBody.parse(created)).toEqual({
      url: "https://hooks.example.com/x",
      event_types: ["run.failed"],
      project_ids: ["p4k8z1m6x0c3v9b2n7q5", "p5k8z1m6x0c3v9b2n7q5"],
    });
    const recipient = { ...form, address: "a@example.com", projects: "" };
    expect(createEmailRecipientBody.parse(creationBody("email-recipients", recipient))).toEqual({
      email: "a@example.com",
      event_types: ["run.failed"],
    });
  });

  it("changes what differs from the form as it was made, and nothing that has changed meanwhile", () => {
    const made = { ...form, projects: " " };
    expect(changeBody("webhooks", made, { ...made, address: form.address.trim() })).toBeUndefined();
    // The receiver was disabled since: `enabled` is not among what is sent.
    const described = changeBody("webhooks", made, { ...made, description: " Pages " });
    expect(patchWebhookBody.parse(described)).toEqual({ description: "Pages" });
    expect(changeBody("webhooks", { ...made, description: "Pages" }, made)).toEqual({ description: null });
    expect(changeBody("webhooks", form, made)).toEqual({ project_ids: null });
    const other = changeBody("email-recipients", made, {
      ...made,
      address: "b@example.com",
      isEnabled: false,
    });
    expect(patchEmailRecipientBody.parse(other)).toEqual({ enabled: false });
  });
});

it.each([
  [{ enabled: true }, "active"],
  [{ enabled: true, failing_since: "2026-11-21T12:00:00Z" }, "failing"],
  [{ enabled: true, confirmed: false }, "unconfirmed"],
  [{ enabled: false, disabled_reason: "requested" }, "disabled"],
  [{ enabled: false, confirmed: false, disabled_reason: "unsubscribed" }, "unsubscribed"],
])("%j is %s", (state, word) => {
  expect(receiverStatus(state as Receiver)).toBe(word);
});
