import { assert } from '../policy/assert.ts'
import { type Platform, pause } from '../policy/platform.ts'
import {
  result,
  type CommandResult,
  type DeviceCommand,
  type DeviceEvent,
  type ProtectionDevice,
} from './kit/device.ts'
import { openDevice, type DeviceEntry } from './registry.ts'
import { DeviceConnection, type DeviceStatus } from './device-connection.ts'
import { fairLinks } from './transports/fair-links.ts'
import { openLink } from './transports/link-settings.ts'
import { SharedLinks, type OpenLink } from './transports/shared-links.ts'

export interface SupervisorOptions {
  /** Entries that `checkDevices` returned. */
  readonly devices: readonly DeviceEntry[]
  readonly platform: Platform
  /** Opens a link; default: the real transports. */
  readonly openLink?: OpenLink
  /** Makes the device of an entry; default: its driver. */
  readonly openDevice?: (entry: DeviceEntry, links: SharedLinks, platform: Platform) => ProtectionDevice
  onState?(status: DeviceStatus): void | Promise<void>
  onEvent?(deviceId: string, event: DeviceEvent): void | Promise<void>
  /** Called if a listener throws or rejects; the supervisor continues. */
  onListenerError?(error: unknown): void
}

/** Keeps the devices of one agent connected, and forwards commands and events. */
export interface Supervisor {
  readonly statuses: readonly DeviceStatus[]
  /** Null if no device with this id is configured. */
  status(deviceId: string): DeviceStatus | null
  /** Never rejects. If the device is not ready, the result is `failed` and the device received no command. */
  execute(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  /** Starts to connect one more device, and returns at once. The other devices stay connected. */
  add(entry: DeviceEntry): void
  /**
   * Switches the outputs of a device off, and connects it with another entry. The other devices stay connected. Resolves
   * when the new connection begins, at most 3 s later.
   */
  replace(entry: DeviceEntry): Promise<void>
  /** Closes the device's connection and reconnects at once. Returns false if the id is unknown. */
  restart(deviceId: string): boolean
  /** Switches reachable outputs off and closes all links, within `limitMs` (default 3,000). Idempotent. */
  stop(limitMs?: number): Promise<void>
}

const STOP_WITHIN_MS = 3_000

/** Starts to connect all devices, and returns at once. The agent also works while devices are absent. */
export function supervise(options: SupervisorOptions): Supervisor {
  const { platform } = options
  const links = new SharedLinks(fairLinks(options.openLink ?? openLink, platform.clock), platform)
  const connections = new Map<string, DeviceConnection>()
  let stopped: Promise<void> | null = null

  function safely(call: () => void | Promise<void> | undefined): void {
    const failed = (error: unknown) => {
      try {
        options.onListenerError?.(error)
      } catch {
        // Ignores the error of the error listener, because no other code could receive this error.
      }
    }
    try {
      void Promise.resolve(call()).catch(failed)
    } catch (error) {
      failed(error)
    }
  }

  function add(entry: DeviceEntry): void {
    assert(!connections.has(entry.deviceId), `the device ${entry.deviceId} is connected already`)
    connect(entry)
  }

  function connect(entry: DeviceEntry): void {
    if (stopped) return
    const device = new DeviceConnection({
      deviceId: entry.deviceId,
      driver: entry.driver,
      device: (options.openDevice ?? openDevice)(entry, links, platform),
      platform,
      onState: (status) => safely(() => options.onState?.(status)),
      onEvent: (event) => safely(() => options.onEvent?.(entry.deviceId, event)),
    })
    connections.set(entry.deviceId, device)
  }

  for (const entry of options.devices) add(entry)

  async function within(limitMs: number, work: Promise<unknown>): Promise<void> {
    const timeUp = new AbortController()
    await Promise.race([work, pause(platform.timers, limitMs, timeUp.signal).catch(() => {})])
    timeUp.abort()
  }

  async function stopAll(limitMs: number): Promise<void> {
    await within(
      limitMs,
      Promise.all([...connections.values()].map((device) => device.stop())).then(() => links.close()),
    )
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
    add,
    async replace(entry) {
      await within(STOP_WITHIN_MS, connections.get(entry.deviceId)?.stop() ?? Promise.resolve())
      connect(entry)
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
