import { result, type ProtectionDevice, type TagRead } from '../../device-drivers/kit/device.ts'
import { EventQueue } from '../../device-drivers/kit/event-queue.ts'

/** A reader without a link. Its simulated reads pass through the whole agent. */
export function fakeReader() {
  const queue = new EventQueue()
  const device: ProtectionDevice = {
    connect: async () => undefined,
    identify: async () => ({ description: 'a fake reader' }),
    untilLost: () => new Promise(() => undefined),
    execute: async () => result('failed', false, 'not_supported'),
    events: queue.events,
    close: async () => queue.end(),
  }
  return { device, see: (reads: readonly TagRead[]) => queue.put({ type: 'tags', reads }) }
}
