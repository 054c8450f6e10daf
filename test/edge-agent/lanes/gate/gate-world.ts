import type { DeviceCommand } from '../../../../device-drivers/kit/device.ts'
import type { KnownItem } from '../../../../edge-agent/items/item-table.ts'
import type { Zone } from '../../../../edge-agent/lanes/gate/tags/deduplicate.ts'
import type { DeviceRecord } from '../../../../edge-agent/devices/device-journal.ts'
import { GateLane, type GateParts } from '../../../../edge-agent/lanes/gate/gate-lane.ts'
import type { TagAssessment } from '../../../../edge-agent/lanes/gate/assess-tag.ts'
import type { StationaryTag } from '../../../../edge-agent/lanes/gate/tags/presence.ts'
import { GatePolicy, DEFAULT_POLICY, type ProtectionPolicy } from '../../../../policy/store-policy.ts'
import { randomFraction } from '../../../../policy/platform.ts'
import type { ItemStatus } from '../../../../policy/vocabulary.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

/** One gate on a virtual clock, with items and people who carry tags. */
export interface GateWorld {
  world: VirtualPlatform
  lane: GateLane
  items: Map<string, KnownItem>
  /** State of the cloud. `syncs`: number of requests for newer items. `answer`: answers such a request. */
  cloud: { isBehind: boolean; isOnline: boolean; ageMs: number; syncs: number; answer: () => Promise<void> }
  commands: { atMs: number; command: DeviceCommand }[]
  events: DeviceRecord[]
  gone: { tag: string; leftMs: number }[]
  alarms: { epc: string; assessment: TagAssessment; atMs: number }[]
  /** Adds an item and returns its EPC. */
  item(status: ItemStatus, fields?: Partial<KnownItem>): string
  /** Advances the time while people walk. Resolves when the last walker is gone. */
  walk(...walkers: Walker[]): Promise<void>
  /** Restarts the agent with the stored stationary tags. */
  restart(): void
  sirens(): number
  reasons(): string[]
}

/** A person or place with tags. */
export interface Walker {
  epcs: readonly string[]
  /** Probability of a read per zone and 20 ms, `ms` after the start. Undefined when the walker is gone. */
  seen(ms: number): { inside: number; outside: number; none: number } | undefined
}

const READ_MS = 20
const nowhere = { inside: 0, outside: 0, none: 0 }
let serial = 0

export function newTag(): string {
  return `3034007D00011C40${(++serial).toString(16).padStart(8, '0')}`.toUpperCase()
}

export function gateWorld(
  options: {
    policy?: Partial<ProtectionPolicy>
    gate?: Parameters<typeof GatePolicy.parse>[0]
    isNew?: boolean
    sirenSeconds?: number
    seed?: number
  } = {},
): GateWorld {
  const world = virtualPlatform({ seed: options.seed ?? 3 })
  const policy: ProtectionPolicy = { ...DEFAULT_POLICY, ...options.policy, gate: GatePolicy.parse(options.gate ?? {}) }
  const items = new Map<string, KnownItem>()
  const cloud = { isBehind: false, isOnline: true, ageMs: 0, syncs: 0, answer: () => Promise.resolve() }
  let stationaryTags: readonly StationaryTag[] | undefined = options.isNew ? undefined : []
  const commands: GateWorld['commands'] = []
  const events: DeviceRecord[] = []
  const gone: GateWorld['gone'] = []
  const alarms: GateWorld['alarms'] = []

  function open(): GateLane {
    const parts: GateParts = {
      deviceId: 'dev_gate',
      platform: world,
      items: {
        find: (_kind, name) => items.get(name),
        get isBehind() {
          return cloud.isBehind
        },
        get confirmedMs() {
          return cloud.ageMs === Number.POSITIVE_INFINITY ? 0 : world.clock.wall() - cloud.ageMs
        },
      },
      nowMs: world.clock.wall,
      policy: () => policy,
      isOnline: () => cloud.isOnline,
      syncItems() {
        cloud.syncs++
        return cloud.answer()
      },
      pieces: { covers: () => false },
      released: { covers: () => false, isFor: () => false, unitOf: () => undefined },
      tagsOfReceipt: () => [],
      onLeft: () => undefined,
      signal: (command) => void commands.push({ atMs: world.clock.elapsed(), command }),
      sirenSeconds: options.sirenSeconds ?? 5,
      record: (event) => void events.push(event),
      stationaryTags,
      onGone: (tag, leftMs) => void gone.push({ tag, leftMs }),
      onAlarm: (epc, assessment) => void alarms.push({ epc, assessment, atMs: world.clock.elapsed() }),
    }
    return new GateLane(parts)
  }

  const gate: GateWorld = {
    world,
    lane: open(),
    items,
    cloud,
    commands,
    events,
    gone,
    alarms,
    item(status, fields = {}) {
      const epc = newTag()
      items.set(epc, { status, paying: false, ...fields })
      return epc
    },
    async walk(...walkers) {
      let going = [...walkers]
      for (let ms = 0; going.length > 0; ms += READ_MS) {
        going = going.filter((walker) => walker.seen(ms) !== undefined)
        for (const walker of going) {
          const seen = walker.seen(ms) ?? nowhere
          for (const epc of walker.epcs) {
            for (const zone of ['inside', 'outside', 'none'] as const satisfies readonly Zone[]) {
              if (randomFraction(world.random) < seen[zone]) gate.lane.see(epc, zone, world.clock.elapsed())
            }
          }
        }
        await world.advance(READ_MS)
      }
    },
    restart() {
      stationaryTags = gate.lane.stationaryTags()
      gate.lane.stop()
      gate.lane = open()
    },
    sirens: () =>
      commands.filter(({ command }) => command.kind === 'signal' && command.signal === 'siren' && command.seconds > 0)
        .length,
    reasons: () => events.map((event) => event.reason ?? event.type),
  }
  return gate
}

/** Walks from inside to outside in two seconds. Both antennas read the tags. */
export const goesOut = (...epcs: string[]): Walker => ({
  epcs,
  seen(ms) {
    if (ms >= 2_000) return undefined
    return { inside: ms < 900 ? 0.4 : ms < 1_100 ? 0.2 : 0, outside: ms < 800 ? 0 : ms < 1_100 ? 0.2 : 0.4, none: 0 }
  },
})

export const comesIn = (...epcs: string[]): Walker => ({
  epcs,
  seen(ms) {
    if (ms >= 2_000) return undefined
    return { outside: ms < 900 ? 0.4 : ms < 1_200 ? 0.2 : 0, inside: ms < 800 ? 0 : ms < 1_200 ? 0.2 : 0.4, none: 0 }
  },
})

/** Stays inside near the gate for `forMs`, then returns into the shop. */
export const lingers = (forMs: number, ...epcs: string[]): Walker => ({
  epcs,
  seen: (ms) => (ms >= forMs ? undefined : { inside: 0.3, outside: 0, none: 0 }),
})

/** Tags that do not move, between the antennas. */
export const staysBetweenAntennas = (forMs: number, ...epcs: string[]): Walker => ({
  epcs,
  seen: (ms) => (ms >= forMs ? undefined : { inside: 0.2, outside: 0.1, none: 0 }),
})

/** Carries tags out that are read only outside. */
export const isCarriedOut = (...epcs: string[]): Walker => ({
  epcs,
  seen: (ms) => (ms >= 2_500 ? undefined : { inside: 0, outside: 0.4, none: 0 }),
})

/** Tags near a gate without antenna sides, for `forMs`. */
export const isNear = (forMs: number, ...epcs: string[]): Walker => ({
  epcs,
  seen: (ms) => (ms >= forMs ? undefined : { inside: 0, outside: 0, none: 0.3 }),
})

/** Passes a gate without antenna sides. */
export const approaches = (...epcs: string[]): Walker => ({
  epcs,
  seen: (ms) => (ms >= 1_500 ? undefined : { inside: 0, outside: 0, none: 0.4 }),
})

/** No reads for `forMs`. */
export const nobody = (forMs: number): Walker => ({ epcs: [], seen: (ms) => (ms >= forMs ? undefined : nowhere) })
