import { suite } from "uvu";
import * as assert from "uvu/assert";
import { BadAddress, socketAddress } from "../../clients/link/address.js";

const test = suite("address");

test("[5] a service's URL gives its socket", () => {
  for (const [url, socket] of [
    ["http://127.0.0.1:7420", "ws://127.0.0.1:7420/v1/socket"],
    ["http://127.0.0.1:7420/", "ws://127.0.0.1:7420/v1/socket"],
    ["ws://[::1]:1/v1/socket", "ws://[::1]:1/v1/socket"],
    ["https://home.example/clankie", "wss://home.example/clankie/v1/socket"],
    ["wss://home.example/v1/socket/", "wss://home.example/v1/socket"],
  ] as const)
    assert.is(socketAddress(url), socket);
});

test("[5] never a token in a URL, and nothing that is no service", () => {
  for (const url of ["", "7420", "ftp://h", "http://u:p@h", "http://h/?token=x", "http://h/#x", "javascript:1"])
    assert.throws(
      () => socketAddress(url),
      (error: unknown) => error instanceof BadAddress,
    );
});

test.run();
