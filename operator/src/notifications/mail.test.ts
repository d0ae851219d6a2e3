import { describe, expect, it } from "vitest";
import { confirmationMail, eventMail, mailText } from "./mail.ts";

const LINK = "https://api.example.com/v1/email/unsubscribe/t";
const payload = (data: object) =>
  JSON.stringify({
    type: "deployment.failed",
    timestamp: "2026-11-21T12:00:00.000Z",
    data: { organization_id: "acme", project_id: "pshop", ...data },
  });

describe("a mail about an event", () => {
  it("has the event in plain text, and the link that ends them", () => {
    const { subject, text } = eventMail(payload({ message: "Nothing answers." }), "Acme", LINK);
    expect(subject).toBe("[Slipway] deployment.failed: pshop");
    expect(text.split("\n")).toEqual([
      "deployment.failed at 2026-11-21T12:00:00.000Z",
      "",
      "organization_id: acme",
      "project_id: pshop",
      "message: Nothing answers.",
      "",
      "-- ",
      "Organization: Acme",
      `End notifications from this organization: ${LINK}`,
      "",
    ]);
  });

  it("has no line, no header and no length that a tenant chose", () => {
    const message = `x\r\nBcc: all@example.com\n.\r\n${"y".repeat(5_000)}`;
    const { text } = eventMail(payload({ message }), "Acme\nBcc: b@example.com", LINK);
    expect(text).not.toMatch(/^Bcc/m);
    expect(text).not.toMatch(/^\.$/m);
    expect(text.length).toBeLessThan(1_500);
  });
});

describe("a confirmation mail", () => {
  // Shows: docs/email.md#confirmation: what it says
  it("says nothing of an organization but its name, on its line", () => {
    const hostile = "Buy now\r\nSubject: http://spam.example \u202E reversed".padEnd(500, "!");
    const { subject, text } = confirmationMail(hostile, "7KQ2-M9XD", LINK);
    expect(subject).toBe("Confirm notifications by e-mail");
    expect(text).toContain("Code: 7KQ2-M9XD");
    expect(text.split("\n")[0]).toMatch(
      /^The organization "Buy now Subject: http:\/\/spam.example {2,3}reversed!+" on/,
    );
    expect(text.split("\n")[0]?.length).toBeLessThan(160);
    expect(text).not.toMatch(/^Subject/m);
  });

  it("is not sent once its code confirms no more", () => {
    const mail = { organizationName: "Acme", confirmationCode: null };
    expect(mailText({ eventType: "email.confirmation", payload: "{}", mail }, LINK)).toBeUndefined();
  });
});
