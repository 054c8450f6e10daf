import {
  result,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type ProtectionDevice,
  type TagName,
} from '../../device-drivers/kit/device.ts'
import { EventQueue } from '../../device-drivers/kit/event-queue.ts'

/**
 * A device without a link. Its simulated events pass through the whole agent. It records the commands that it receives.
 */
export interface FakeDevice {
  device: ProtectionDevice
  commands: DeviceCommand[]
  emit(event: DeviceEvent): void
  /** Simulates a tag on the device. */
  placeTag(tag: TagName, more?: { rssiDbm?: number; seenAtMs?: number }): void
}

/** Creates the device. `clock` returns the agent's elapsed time, ms. */
export function fakeDevice(
  clock: () => number,
  answer: CommandResult = result('confirmed', true, 'acknowledged'),
): FakeDevice {
  const queue = new EventQueue()
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
    emit: queue.put,
    placeTag: (tag, more = {}) => queue.put({ type: 'tags', reads: [{ tag, seenAtMs: clock(), ...more }] }),
  }
}
