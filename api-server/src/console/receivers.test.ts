import {
  createEmailRecipientBody,
  createWebhookBody,
  eventTypes,
  patchEmailRecipientBody,
  patchWebhookBody,
} from "@slipway/crds";
import { describe, expect, it } from "vitest";
import {
  changeBody,
  creationBody,
  EVENT_TYPES,
  type ReceiverForm,
  receiverStatus,
} from "../../console/lib/receivers.ts";
import type { Receiver } from "../../console/lib/shapes.ts";

const form: ReceiverForm = {
  address: " https://hooks.example.com/x ",
  description: "",
  types: ["run.failed"],
  projects: "p4k8z1m6x0c3v9b2n7q5, p4k8z1m6x0c3v9b2n7q5  p5k8z1m6x0c3v9b2n7q5",
  isEnabled: true,
};

describe("a form", () => {
  it("offers the API's types of events", () => {
    expect(EVENT_TYPES).toEqual(eventTypes);
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
    expect(patchWebhookBody.parse(changeBody("webhooks", { ...form, projects: " " }))).toMatchObject({
      description: null,
      project_ids: null,
      enabled: true,
    });
    expect(patchEmailRecipientBody.parse(changeBody("email-recipients", recipient))).not.toHaveProperty(
      "email",
    );
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
