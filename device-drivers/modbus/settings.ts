import { z } from 'zod'
import type { ModbusFraming } from './protocol/pdu.ts'
import { linkKey, linkMode, LinkSettings } from '../transports/link-settings.ts'
import { type Capabilities, DeviceId, type ExclusiveResource } from '../kit/driver.ts'
import { type Signal, LONGEST_SIGNAL_S, SIGNALS } from '../kit/device.ts'
import { OpenSeconds } from '../kit/door-watch.ts'
import { emergencySetting, OPENS_IN_EMERGENCY } from '../kit/emergency-input.ts'

const address = (what: string) => {
  const error = `give the number of the ${what}, counted from 0 (0 to 65535)`
  return z.int({ error }).min(0, { error }).max(65_535, { error })
}
const ms = (from: number, to: number) => {
  const error = `give milliseconds, ${from} to ${to}`
  return z.int({ error }).min(from, { error }).max(to, { error })
}
const unitError = 'give the address of the board on its bus, 0 to 255 (RTU: 1 to 255)'
const Lamp = z.strictObject({ output: address('output (coil) of the lamp') }, { error: 'give { "output": … }' })

const secondsError = { error: `give seconds, 1 to ${LONGEST_SIGNAL_S}` }
const Siren = z.strictObject(
  {
    output: address('output (coil) of the siren'),
    seconds: z.number(secondsError).min(1, secondsError).max(LONGEST_SIGNAL_S, secondsError).default(5),
  },
  { error: 'give { "output": …, "seconds": 5 }' },
)

const Door = z.strictObject(
  {
    input: address('door sensor, which is 1 while the door is open'),
    openSeconds: OpenSeconds,
  },
  { error: 'give { "input": …, "openSeconds": 30 }' },
)
const Interlock = z.strictObject(
  { armedInput: address('contact of the output itself, which is 1 while it is on').optional() },
  { error: 'give { } or { "armedInput": … }' },
)
const Beams = z.strictObject(
  { outside: address('beam on the street side'), inside: address('beam on the shop side') },
  { error: 'give { "outside": …, "inside": … }' },
)

/** A board needs at least one of these settings. */
const PURPOSES = ['output', 'siren', 'amber', 'green', 'passageInput', 'beams', 'emergency'] as const

/** One relay and input board, or the part of a board that this device uses. */
export const ModbusSettings = z
  .strictObject({
    deviceId: DeviceId,
    driver: z.literal('modbus'),
    link: LinkSettings,
    framing: z
      .enum(['rtu', 'tcp'], { error: 'use "tcp" (Modbus TCP) or "rtu" (serial line or raw serial device server)' })
      .optional()
      .meta({ description: 'by default tcp on a tcp link and rtu on a serial one' }),
    echo: z
      .enum(['none'], { error: 'use "none" if the line never repeats what the agent sends, or leave it out' })
      .optional()
      .meta({ description: 'none: a board that answers like an echo counts as a board' }),
    unit: z.int({ error: unitError }).min(0, { error: unitError }).max(255, { error: unitError }).default(1),
    output: address('output (coil) that releases').optional().meta({
      description: 'coil that is pulsed to release; without it the board has no lock, barrier or deactivator',
    }),
    confirmInput: address('input that shows the release').optional(),
    pulseMs: ms(20, 10_000).default(200),
    hardwarePulse: z
      .enum(['waveshare'], { error: 'use "waveshare" for boards with their "flash on" command, or leave it out' })
      .optional()
      .meta({ description: 'the board itself ends the pulse' }),
    passageInput: address('input of the passage sensor').optional(),
    door: Door.optional().meta({
      description: 'door behind the lock: relocks when it opens, reports a door that is forced or left open',
    }),
    interlock: Interlock.optional().meta({
      description: 'the output arms a deactivator for pulseMs at most, and until confirmInput shows that it is done',
    }),
    emergency: emergencySetting(address('emergency input')),
    opensInEmergency: OPENS_IN_EMERGENCY,
    beams: Beams.optional().meta({ description: 'people counter' }),
    siren: Siren.optional(),
    amber: Lamp.optional(),
    green: Lamp.optional(),
    requestTimeoutMs: ms(20, 5_000).default(500),
    pollMs: ms(5, 1_000).default(20),
  })
  .refine((settings) => framingOf(settings) === 'tcp' || settings.unit >= 1, {
    error: 'Modbus RTU boards have addresses 1 to 255; all boards obey 0, and none answers',
    path: ['unit'],
  })
  .refine((settings) => settings.echo === undefined || framingOf(settings) === 'rtu', {
    error: 'only Modbus RTU lines have an echo: remove it',
    path: ['echo'],
  })
  .refine(({ hardwarePulse, output = 0, pulseMs }) => !hardwarePulse || (pulseMs % 100 === 0 && output < 256), {
    error: 'the board counts in 100 ms: give 100, 200, … (and an output below 256)',
    path: ['pulseMs'],
  })
  .refine(({ interlock, confirmInput }) => !interlock || confirmInput !== undefined, {
    error: 'give the input that shows a deactivation, at which the interlock closes',
    path: ['confirmInput'],
  })
  .refine(({ interlock, opensInEmergency }) => !interlock || opensInEmergency !== true, {
    error: 'a deactivator never moves in an emergency: use false, or leave it out',
    path: ['opensInEmergency'],
  })
  .superRefine((settings, context) => {
    if (settings.output !== undefined) return
    for (const key of ['confirmInput', 'door', 'interlock', 'hardwarePulse'] as const) {
      if (settings[key] === undefined) continue
      context.addIssue({
        code: 'custom',
        path: [key],
        message: `belongs to a release; give "output" too, or remove it`,
      })
    }
    if (!PURPOSES.some((key) => settings[key] !== undefined))
      context.addIssue({
        code: 'custom',
        path: ['output'],
        message: `give one of ${PURPOSES.map((key) => `"${key}"`).join(', ')}`,
      })
  })
export type ModbusSettings = z.infer<typeof ModbusSettings>

/** The framing; default: Modbus TCP on a network link, RTU on a serial one. */
export function framingOf(settings: {
  readonly framing?: ModbusFraming | undefined
  readonly link: LinkSettings
}): ModbusFraming {
  return settings.framing ?? ('tcp' in settings.link ? 'tcp' : 'rtu')
}

/** Wiring of the link; devices with the same wiring can share it. */
export function wiringOf(
  settings: Pick<ModbusSettings, 'framing' | 'link' | 'echo'>,
): ModbusFraming | 'rtuWithoutEcho' {
  return settings.echo === 'none' ? 'rtuWithoutEcho' : framingOf(settings)
}

/** Framing and line settings, which must be the same for all devices on one link. */
export function linkUseOf(settings: ModbusSettings): string {
  const echo = settings.echo === 'none' ? ', without echo' : ''
  return `Modbus ${framingOf(settings).toUpperCase()}${echo}, ${linkMode(settings.link)}`
}

/** The outputs of the configured signals. */
export function signalOutputs(settings: ModbusSettings): Map<Signal, number> {
  const outputs = new Map<Signal, number>()
  for (const signal of SIGNALS) {
    const output = settings[signal]?.output
    if (output !== undefined) outputs.set(signal, output)
  }
  return outputs
}

/** The outputs that only this device may use. Several devices may watch the same input. */
export function exclusiveResourcesOf(settings: ModbusSettings): ExclusiveResource[] {
  const key = (output: number) => `output ${output} of unit ${settings.unit} at ${linkKey(settings.link)}`
  const signals = [...signalOutputs(settings)].map(([signal, output]) => ({
    setting: `${signal}.output`,
    key: key(output),
  }))
  const release = settings.output === undefined ? [] : [{ setting: 'output', key: key(settings.output) }]
  return [...release, ...signals]
}

/** If the settings name an output, the board releases by this output. A people counter also reports passages. */
export function modbusCapabilities(settings: ModbusSettings): Capabilities {
  return {
    releases: settings.output === undefined ? 'nothing' : 'output',
    confirmInput: settings.confirmInput,
    passage: settings.passageInput !== undefined || settings.beams !== undefined,
    departures: undefined,
    antennas: undefined,
    siren: settings.siren,
    feeds: undefined,
    staffCards: false,
    minimumRssiDbm: undefined,
    emergency: settings.emergency,
    opensInEmergency: settings.opensInEmergency,
    webhook: undefined,
  }
}
