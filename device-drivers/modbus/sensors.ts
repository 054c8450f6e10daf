import type { Platform, Cancel } from '../../policy/platform.ts'
import type { DeviceEvent } from '../kit/device.ts'
import { doorWatch } from '../kit/door-watch.ts'
import { emergencyEvent } from '../kit/emergency-input.ts'
import type { ModbusSettings } from './settings.ts'

/** The two beams of a people counter: `outside` is on the street side, `inside` on the shop side. */
type Beam = 'outside' | 'inside'

/** Counts people by the beam that they break first. */
interface BeamCounter {
  set(beam: Beam, broken: boolean): void
  stop(): void
}

interface BeamOptions {
  readonly platform: Platform
  onPerson(direction: 'in' | 'out'): void
  onBlocked(beam: Beam): void
}

/** Maximum time in which one person breaks both beams, ms. */
const WITHIN_MS = 2_000
const BLOCKED_MS = 30_000

/** Makes a counter. A beam that is already broken at the start does not count. */
function beamCounter({ platform, onPerson, onBlocked }: BeamOptions): BeamCounter {
  const { clock, timers } = platform
  const broken = new Map<Beam, boolean>()
  const blocked = new Map<Beam, Cancel>()
  let first: { beam: Beam; atMs: number } | null = null

  return {
    set(beam, isBroken) {
      const before = broken.get(beam)
      if (before === isBroken) return
      broken.set(beam, isBroken)
      blocked.get(beam)?.()
      blocked.delete(beam)
      if (!isBroken) return
      blocked.set(
        beam,
        timers.after(BLOCKED_MS, () => onBlocked(beam)),
      )
      if (before === undefined) return
      if (first && first.beam !== beam && clock.elapsed() - first.atMs <= WITHIN_MS) {
        onPerson(beam === 'inside' ? 'in' : 'out')
        first = null
      } else first = { beam, atMs: clock.elapsed() }
    },
    stop() {
      for (const cancel of blocked.values()) cancel()
      blocked.clear()
    },
  }
}

/** Converts the inputs of one board into events. Exists as long as the device, over all connections. */
export interface Sensors {
  /** The inputs to poll. */
  readonly watched: readonly number[]
  /** Applies the input states that `identify` has read. */
  initial(states: ReadonlyMap<number, boolean>): void
  /** Applies the change of one input. */
  onChange(input: number, on: boolean): void
  /** Call this function when a release begins. */
  released(): void
  /** Sets whether an emergency holds the lock open. */
  heldOpen(held: boolean): void
  stop(): void
}

interface SensorOptions {
  readonly settings: ModbusSettings
  readonly platform: Platform
  emit(event: DeviceEvent): void
  /** Switches the siren on for some seconds, or off with 0. */
  siren(seconds: number): void
}

const BEAMS: readonly Beam[] = ['outside', 'inside']

/** Makes the sensors: passage sensor, door and people counter. */
export function modbusSensors({ settings, platform, emit, siren }: SensorOptions): Sensors {
  const { confirmInput, passageInput, door, beams, interlock, emergency } = settings
  const onFault = (detail: string) => emit({ type: 'fault', detail })
  const watchedDoor =
    door &&
    doorWatch({
      platform,
      openSeconds: door.openSeconds,
      pulseMs: settings.pulseMs,
      onState(state, alarm) {
        emit({ type: 'door', state })
        if (alarm) onFault(alarm)
        if (alarm !== undefined) siren(alarm === null ? 0 : (settings.siren?.seconds ?? 0))
      },
    })
  const counter =
    beams &&
    beamCounter({
      platform,
      onPerson(direction) {
        emit({ type: 'person', direction })
        if (direction === 'out') emit({ type: 'passage' })
      },
      onBlocked: (beam) =>
        onFault(`the ${beam} beam has been broken for 30 s: is something in the way, or is it dirty?`),
    })

  function set(input: number, on: boolean): void {
    const event = emergencyEvent(emergency, input, on)
    if (event) emit(event)
    if (input === door?.input) watchedDoor?.set(on)
    for (const beam of BEAMS) if (input === beams?.[beam]) counter?.set(beam, on)
  }

  return {
    watched: [
      emergency?.input,
      confirmInput,
      passageInput,
      door?.input,
      interlock?.armedInput,
      beams?.outside,
      beams?.inside,
    ].filter((input) => input !== undefined),
    initial: (states) => states.forEach((on, input) => set(input, on)),
    onChange(input, on) {
      emit({ type: 'input', input, on })
      if (input === passageInput && on) emit({ type: 'passage' })
      set(input, on)
    },
    released: () => watchedDoor?.released(),
    heldOpen: (held) => watchedDoor?.heldOpen(held),
    stop() {
      watchedDoor?.stop()
      counter?.stop()
    },
  }
}
