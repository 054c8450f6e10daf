import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { Supervisor } from '../../device-drivers/supervisor.ts'
import { pause, type Platform } from '../../policy/platform.ts'

const POLL_MS = 100
/** Time limit of a check, ms. To connect and identify a reader takes a few seconds. */
const TIMEOUT_MS = 10_000
const DONE: ReadonlySet<string> = new Set(['ready', 'absent', 'degraded'])

/** Reconnects a device and returns its status. Undefined if the device is not configured at this agent. */
export async function checkDevice(
  supervisor: Supervisor,
  platform: Platform,
  deviceId: string,
): Promise<DeviceStatus | undefined> {
  if (!supervisor.restart(deviceId)) return undefined
  const endMs = platform.clock.elapsed() + TIMEOUT_MS
  for (;;) {
    await pause(platform.timers, POLL_MS)
    const status = supervisor.status(deviceId)
    const isDone = status !== null && DONE.has(status.state) && status.detail !== 'restarted by command'
    if (isDone || platform.clock.elapsed() >= endMs) return status ?? undefined
  }
}
