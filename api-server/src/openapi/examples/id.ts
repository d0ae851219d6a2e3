/** Id of the project that the examples are about. */
export const EXAMPLE_ID = "p4k8z1m6x0c3v9b2n7q5";
