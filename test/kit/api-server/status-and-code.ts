/** Status and `code` of an answer of the API, as tests of refusals expect them. */
export const statusAndCode = (answer: {
  statusCode: number;
  json: () => { code?: string };
}): [number, string | undefined] => [answer.statusCode, answer.json().code];
