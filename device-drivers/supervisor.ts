import type { Platform } from '../policy/platform.ts'
import { pause } from '../policy/platform.ts'
import { result } from './drivers/device.ts'
import type { CommandResult, DeviceCommand, DeviceEvent, ProtectionDevice } from './drivers/device.ts'
import { openDevice } from './drivers/registry.ts'
import type { DeviceEntry } from './drivers/registry.ts'
import { maintainConnection } from './device-connection.ts'
import type { DeviceStatus, DeviceConnection } from './device-connection.ts'
import { openLink } from './transports/link-settings.ts'
import { sharedLinks } from './transports/shared-links.ts'
import type { OpenLink, SharedLinks } from './transports/shared-links.ts'

export interface SupervisorOptions {
  /** Entries as `checkDevices` gives them. */
  readonly devices: readonly DeviceEntry[]
  readonly platform: Platform
  /** How links are opened; by default the real ones. */
  readonly openLink?: OpenLink
  /** How a device is made of its entry; by default by its driver. */
  readonly openDevice?: (entry: DeviceEntry, links: SharedLinks, platform: Platform) => ProtectionDevice
  onState?(status: DeviceStatus): void | Promise<void>
  onEvent?(deviceId: string, event: DeviceEvent): void | Promise<void>
  /** A listener threw; the supervisor goes on. */
  onListenerError?(error: unknown): void
}

/** Keeps the devices of one agent connected for ever and passes commands and events. */
export interface Supervisor {
  readonly statuses: readonly DeviceStatus[]
  /** Null for a device that is not configured here. */
  status(deviceId: string): DeviceStatus | null
  /** Never rejects; a device that is not ready answers `failed` with nothing commanded. */
  execute(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  /** Drops the device's connection and begins anew at once. False for an unknown device. */
  restart(deviceId: string): boolean
  /** Switches outputs off where they can be reached and lets go of everything, within `limitMs` (3,000). Idempotent. */
  stop(limitMs?: number): Promise<void>
}

const STOP_WITHIN_MS = 3_000

/** Starts to connect all devices and returns at once: an agent works with any of them absent. */
export function supervise(options: SupervisorOptions): Supervisor {
  const { platform } = options
  const links = sharedLinks(options.openLink ?? openLink, platform)
  const connections = new Map<string, DeviceConnection>()
  let stopped: Promise<void> | null = null

  function safely(call: () => void | Promise<void> | undefined): void {
    const failed = (error: unknown) => {
      try {
        options.onListenerError?.(error)
      } catch {
        // Nobody is left to be told.
      }
    }
    try {
      void Promise.resolve(call()).catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  for (const entry of options.devices) {
    const device = maintainConnection({
      deviceId: entry.deviceId,
      driver: entry.driver,
      device: (options.openDevice ?? openDevice)(entry, links, platform),
      platform,
      onState: (status) => safely(() => options.onState?.(status)),
      onEvent: (event) => safely(() => options.onEvent?.(entry.deviceId, event)),
    })
    connections.set(entry.deviceId, device)
  }

  async function stopAll(limitMs: number): Promise<void> {
    const timeUp = new AbortController()
    const closed = Promise.all([...connections.values()].map((device) => device.stop())).then(() => links.close())
    await Promise.race([closed, pause(platform.timers, limitMs, timeUp.signal).catch(() => {})])
    timeUp.abort()
    void links.close()
  }

  return {
    get statuses() {
      return [...connections.values()].map((device) => device.status)
    },
    status: (deviceId) => connections.get(deviceId)?.status ?? null,
    async execute(deviceId, command, signal) {
      const device = connections.get(deviceId)
      if (!device) return result('failed', false, 'not_ready', `no device ${deviceId} is configured here`)
      return device.execute(command, signal)
    },
    restart(deviceId) {
      connections.get(deviceId)?.restart()
      return connections.has(deviceId)
    },
    stop(limitMs = STOP_WITHIN_MS) {
      stopped ??= stopAll(limitMs)
      return stopped
    },
  }
}
