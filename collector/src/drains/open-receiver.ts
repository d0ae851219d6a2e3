import type { LogDrain } from "@slipway/crds";
import type { AddressOptions } from "./address.ts";
import type { Credentials } from "./credentials.ts";
import { OtlpReceiver } from "./otlp-receiver.ts";
import { DeliveryError, type Receiver } from "./receiver.ts";
import { SyslogReceiver } from "./syslog-receiver.ts";

/** The receiver that a drain names. It connects once something is sent. @throws DeliveryError */
export function openReceiver(
  { spec }: LogDrain,
  credentials: Credentials,
  options: AddressOptions,
): Receiver {
  if (spec.otlpHttp !== undefined) {
    // A resource may be older than its definition.
    if (!URL.canParse(spec.otlpHttp.endpoint)) {
      throw new DeliveryError("ReceiverInvalid", "the endpoint is no URL");
    }
    return new OtlpReceiver(spec.otlpHttp.endpoint, credentials, options);
  }
  if (spec.syslog !== undefined) {
    return new SyslogReceiver(spec.syslog, credentials, options);
  }
  throw new DeliveryError("ReceiverInvalid", "the drain names no receiver");
}
