import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { Supervisor } from '../../device-drivers/supervisor.ts'
import { pause, type Platform } from '../../policy/platform.ts'

const POLL_MS = 100
/** A reader's link takes a few seconds, and so does `identify`. */
const TIMEOUT_MS = 10_000
const DONE: ReadonlySet<string> = new Set(['ready', 'absent', 'degraded'])

/** Connects a device anew and answers what it says it is, or what is wrong; undefined for one that is not configured here. */
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
