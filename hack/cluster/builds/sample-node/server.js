import { createServer } from "node:http";
import { hostname } from "node:os";

const port = Number(process.env.PORT ?? 8080);
const started = new Date().toISOString();

/** Answers every request with JSON about itself. */
const server = createServer((request, response) => {
  console.log(`${request.method} ${request.url}`);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    `${JSON.stringify({ message: "Hello from Node", path: request.url, hostname: hostname(), started })}\n`,
  );
});

server.listen(port, () => console.log(`listening on ${port}`));

process.on("SIGTERM", () => server.close());
