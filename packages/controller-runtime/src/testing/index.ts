/** Fakes and helpers for tests of whatever uses `@slipway/controller-runtime`. */
export { eventually } from "./eventually.ts";
export { FakeApiserver, type SeenRequest } from "./fake-apiserver.ts";
export { FakeClock } from "./fake-clock.ts";
export { TcpProxy, type TcpTap } from "./tcp-proxy.ts";
export { type ReceivedSpan, startTraceReceiver, type TraceReceiver } from "./trace-receiver.ts";
