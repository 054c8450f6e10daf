import {
  result,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type ProtectionDevice,
  type TagName,
} from '../../device-drivers/drivers/device.ts'
import { eventQueue } from '../../device-drivers/drivers/event-queue.ts'

/** A device without a link: simulated inputs pass through the whole agent, and it records its commands. */
export interface FakeDevice {
  device: ProtectionDevice
  commands: DeviceCommand[]
  tells(event: DeviceEvent): void
  /** Simulates a tag on the device. */
  lay(tag: TagName, more?: { rssiDbm?: number; seenAtMs?: number }): void
}

/** `clock`: elapsed ms of the agent. */
export function fakeDevice(
  clock: () => number,
  answer: CommandResult = result('confirmed', true, 'acknowledged'),
): FakeDevice {
  const queue = eventQueue()
  const commands: DeviceCommand[] = []
  return {
    commands,
    device: {
      connect: async () => undefined,
      identify: async () => ({ description: 'a fake device' }),
      untilLost: () => new Promise(() => undefined),
      execute: async (command) => {
        commands.push(command)
        return answer
      },
      events: queue.events,
      close: async () => queue.end(),
    },
    tells: queue.put,
    lay: (tag, more = {}) => queue.put({ type: 'tags', reads: [{ tag, seenAtMs: clock(), ...more }] }),
  }
}
