import type { DoorState } from '../../device-drivers/kit/device.ts'
import type { DeviceRecord } from './device-journal.ts'

/**
 * Stores the sensor state of each door behind a lock. Records an exception if a door is forced or stays open too long.
 */
export interface Doors {
  onDoor(deviceId: string, state: DoorState): void
  /** Undefined until a door sensor of the device has reported. */
  stateOf(deviceId: string): DoorState | undefined
}

export type DoorAlarm = 'door_forced' | 'door_left_open'

export interface DoorsParts {
  record(event: DeviceRecord): void
  isOnline(): boolean
  /** Shows an alarm on the pages. */
  onAlarm(deviceId: string, alarm: DoorAlarm): void
  onChange(): void
}

const ALARMS: Partial<Record<DoorState, { reason: DoorAlarm; detail: string }>> = {
  forced: { reason: 'door_forced', detail: 'the door was opened without a release' },
  left_open: { reason: 'door_left_open', detail: 'the door was not shut in time' },
}

/** Creates the record of the door states. All states are unknown at first. */
export function openDoors({ record, isOnline, onAlarm, onChange }: DoorsParts): Doors {
  const states = new Map<string, DoorState>()
  return {
    onDoor(deviceId, state) {
      states.set(deviceId, state)
      const alarm = ALARMS[state]
      if (alarm) {
        record({
          type: 'protection.exception.raised',
          deviceId,
          protectionAction: 'unlock_fixture',
          offline: !isOnline(),
          ...alarm,
        })
        onAlarm(deviceId, alarm.reason)
      }
      onChange()
    },
    stateOf: (deviceId) => states.get(deviceId),
  }
}
