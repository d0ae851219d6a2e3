import { expect, test } from "vitest";
import { invoiceTerms, overdueTerms } from "./settings.ts";

const read = (value: unknown) => invoiceTerms.safeParse(JSON.stringify(value));

test("what is not set has a default", () => {
  expect(read({}).data).toEqual({ issuer: "", dueDays: 14, taxes: { default: [], countries: {} } });
});

test("taxes are by country", () => {
  const taxes = { countries: { BR: [{ name: "ISS", rate: "2.9" }] } };
  expect(read({ issuer: "A\nB", dueDays: 30, taxes }).data).toEqual({
    issuer: "A\nB",
    dueDays: 30,
    taxes: { default: [], ...taxes },
  });
});

test.each([
  [{ dueDays: 0 }],
  [{ dueDays: 1.5 }],
  [{ taxes: { default: [{ name: "VAT", rate: 20 }] } }],
  [{ taxes: { default: [{ name: "VAT", rate: "-1" }] } }],
  [{ taxes: { default: [{ name: "VAT", rate: "1e3" }] } }],
  [{ taxes: { default: [{ name: "", rate: "1" }] } }],
  [{ taxes: { countries: { brazil: [] } } }],
  [{ tax: {} }],
])("%j is refused", (value) => {
  expect(read(value).success).toBe(false);
});

test("what is no JSON is refused", () => {
  expect(invoiceTerms.safeParse("{").success).toBe(false);
});

test("overdue invoices block after some days, with notices", () => {
  expect(overdueTerms.parse('{"blockDays":14,"noticeDays":[7,1]}')).toEqual({
    blockDays: 14,
    noticeDays: [7, 1],
  });
  expect(overdueTerms.parse('{"blockDays":14}')).toEqual({ blockDays: 14, noticeDays: [] });
});

test.each(["{}", '{"blockDays":0}', '{"blockDays":1.5}', '{"blockDays":14,"noticeDays":[0]}', "14", "{"])(
  "%s are no days after which they block",
  (text) => {
    expect(overdueTerms.safeParse(text).success).toBe(false);
  },
);
