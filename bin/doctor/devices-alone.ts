import type { DeviceEntry } from '../../device-drivers/registry.ts'
import type { DeviceState } from '../../device-drivers/device-connection.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { OpenLink } from '../../device-drivers/transports/shared-links.ts'
import type { Platform } from '../../policy/platform.ts'
import type { Finding } from './finding.ts'
import { deviceFindings } from './running-agent.ts'

/** Maximum time to connect all devices, ms: the longest set-up of a driver, and one retry. */
const CONNECT_MS = 12_000
const SETTLED: ReadonlySet<DeviceState> = new Set(['ready', 'degraded', 'absent'])

/**
 * Connects to the devices of the configuration, as an agent does at its start, and disconnects them again. Call it only
 * while no agent runs: two programs on one line disturb each other. The driver switches the outputs off.
 */
export async function checkDevicesAlone(
  entries: readonly DeviceEntry[],
  { platform, openLink }: { platform: Platform; openLink: OpenLink },
): Promise<Finding[]> {
  const isPushed = (entry: DeviceEntry) => 'push' in entry.link
  const wired = entries.filter((entry) => !isPushed(entry))
  const waiting = new Set(wired.map(({ deviceId }) => deviceId))
  let settle: () => void = () => undefined
  const settled = new Promise<void>((resolve) => (settle = resolve))
  const cancel = platform.timers.after(CONNECT_MS, () => settle())
  const supervisor = supervise({
    devices: wired,
    platform,
    openLink,
    onState({ deviceId, state }) {
      if (SETTLED.has(state)) waiting.delete(deviceId)
      if (waiting.size === 0) settle()
    },
  })
  if (waiting.size > 0) await settled
  cancel()
  const statuses = [...supervisor.statuses]
  await supervisor.stop()
  return [
    ...statuses.flatMap(deviceFindings),
    ...entries.filter(isPushed).map((entry): Finding => ({
      what: entry.deviceId,
      state: 'note',
      detail: 'sends its reads to the agent: start the agent, and check again',
    })),
  ]
}
