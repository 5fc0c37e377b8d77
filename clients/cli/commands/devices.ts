import type { Command } from "commander";
import { renderUnicodeCompact } from "uqr";
import type { DeviceMode, DeviceView } from "../../../protocol/operations.js";
import { type Cli, group, leaf } from "../cli.js";
import { facts, table } from "../render.js";
import type { Session } from "../session.js";
import { oneOf } from "../values.js";

/** `clankie devices …`. */
export function addDevices(program: Command, cli: Cli): void {
  const devices = group(program, "devices", "pair, list and revoke Take Control devices");
  addPair(devices, cli);
  addList(devices, cli);
  addMode(devices, cli);
  addRevoke(devices, cli);
}

function addPair(parent: Command, cli: Cli): void {
  leaf(parent, "pair", "show a one-time code, its expiry and a QR code for a new device", [
    "devices pair",
    "devices pair --read-only",
  ])
    .option("--read-only", "the device sees everything and answers nothing")
    .action((options: { readonly readOnly?: boolean }, command: Command) =>
      cli.remote(command, async (session) => {
        const mode: DeviceMode = options.readOnly === true ? "read-only" : "active";
        const pairing = await session.call("device_pair_begin", { mode });
        session.console.result(pairing, (style) =>
          [
            renderUnicodeCompact(pairing.url),
            "",
            facts(
              [
                ["open", pairing.url],
                ["code", pairing.code],
                ["expires", pairing.expiresAt],
                ["mode", mode],
              ],
              style,
            ),
          ].join("\n"),
        );
        return undefined;
      }),
    );
}

function addList(parent: Command, cli: Cli): void {
  leaf(parent, "list", "list the paired devices").action((_options: unknown, command: Command) =>
    cli.remote(command, async (session) => {
      const result = await session.call("device_list", {});
      session.console.result(result, (style) =>
        result.devices.length === 0
          ? `No device is paired. Pair one with: ${session.commands.of("devices", "pair")}`
          : table(
              ["DEVICE", "NAME", "MODE", "PAIRED", "LAST SEEN"],
              result.devices.map((device) => [
                device.deviceId,
                device.name,
                device.revokedAt === undefined ? device.mode : `revoked ${device.revokedAt}`,
                device.createdAt,
                device.lastSeenAt ?? "never",
              ]),
              style,
            ),
      );
      return undefined;
    }),
  );
}

const show = ({ console }: Session, device: DeviceView): void =>
  console.result({ device }, (style) =>
    facts(
      [
        ["device", device.deviceId],
        ["name", device.name],
        ["mode", device.mode],
        ["revoked", device.revokedAt],
      ],
      style,
    ),
  );

function addMode(parent: Command, cli: Cli): void {
  leaf(parent, "mode", "let a device answer, or only read; it counts from its next request", [
    "devices mode DEVICE read-only",
  ])
    .argument("<device>", "its id")
    .argument("<mode>", "active or read-only", oneOf("active", "read-only"))
    .action((deviceId: string, mode: DeviceMode, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        show(session, (await session.call("device_mode", { deviceId, mode })).device);
        return undefined;
      }),
    );
}

function addRevoke(parent: Command, cli: Cli): void {
  leaf(parent, "revoke", "take a device's rights away for good; it counts from its next request")
    .argument("<device>", "its id")
    .action((deviceId: string, _options: unknown, command: Command) =>
      cli.remote(command, async (session) => {
        show(session, (await session.call("device_revoke", { deviceId })).device);
        return undefined;
      }),
    );
}
