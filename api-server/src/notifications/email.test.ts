import { CONFIRMATION_CODE, EMAIL } from "@slipway/crds";
import { expect, it } from "vitest";
import { newConfirmationCode, newUnsubscribeToken, UNSUBSCRIBE_TOKEN } from "./confirmation.ts";
import { requireEmail } from "./routes/email-recipients.ts";

// Shows: docs/email.md#errors: 409 | `EMAIL_NOT_CONFIGURED`
it("a platform without a mail server says so", () => {
  expect(() => requireEmail({ sendsEmail: true })).not.toThrow();
  expect(() => requireEmail({ sendsEmail: false })).toThrow(
    expect.objectContaining({ status: 409, code: "EMAIL_NOT_CONFIGURED" }),
  );
});

it("codes and tokens have the form that is accepted, and are no two the same", () => {
  const codes = Array.from({ length: 100 }, newConfirmationCode);
  expect(codes.every((code) => CONFIRMATION_CODE.test(code))).toBe(true);
  expect(new Set(codes).size).toBe(100);
  expect(newUnsubscribeToken()).toMatch(UNSUBSCRIBE_TOKEN);
  expect(newUnsubscribeToken()).not.toBe(newUnsubscribeToken());
});

it.each(["a@example.com", "first.last+tag@mail.example.co", "A_b%c-1@xn--bcher-kva.example"])(
  "%s is an address",
  (address) => {
    expect(address).toMatch(EMAIL);
  },
);
