import type { AntennaSides } from './capabilities.ts'
import type { DeviceEvent, Finding, TagRead } from './device.ts'

/** Number of reads that prove a wrong antenna. A single read may be a fault of the radio. */
const PROOF_READS = 3
/** Antennas without a side that are counted. */
const MAX_OTHERS = 64

type Side = keyof AntennaSides

/** Finds out that a gate is blind on a side, although its reader is connected. */
export interface AntennaWatch {
  add(reads: readonly TagRead[]): void
  /** Call this function with what the reader reports about an antenna. A read proves that the antenna is connected. */
  setConnected(antenna: number, isConnected: boolean): void
  /** What is found at present, for `DeviceIdentity.findings`. */
  readonly findings: readonly Finding[]
}

/** Makes the watch of the configured antennas; without them it finds nothing. `put` receives changes. */
export function antennaWatch(antennas: AntennaSides | undefined, put: (event: DeviceEvent) => void): AntennaWatch {
  return antennas ? new Watch(antennas, put) : { add: () => {}, setConnected: () => {}, findings: [] }
}

class Watch implements AntennaWatch {
  readonly #antennas: AntennaSides
  readonly #put: (event: DeviceEvent) => void
  readonly #sides: ReadonlyMap<number, Side>
  readonly #disconnected = new Set<number>()
  /** Sides that no configured antenna has read yet. */
  readonly #silent: Set<Side>
  /** Number of reads by antennas that have no side. */
  readonly #others = new Map<number, number>()
  /** Consecutive reads without an antenna. */
  #unnamed = 0
  #detail: string | null = null

  constructor(antennas: AntennaSides, put: (event: DeviceEvent) => void) {
    this.#antennas = antennas
    this.#put = put
    this.#sides = new Map([
      ...antennas.inside.map((antenna) => [antenna, 'inside'] as const),
      ...antennas.outside.map((antenna) => [antenna, 'outside'] as const),
    ])
    this.#silent = new Set(this.#sides.values())
  }

  get findings(): readonly Finding[] {
    return this.#detail === null ? [] : [{ code: 'reader_antenna', detail: this.#detail, isWarning: false }]
  }

  add(reads: readonly TagRead[]): void {
    for (const { antenna } of reads) {
      if (antenna === undefined) {
        this.#unnamed++
        continue
      }
      this.#unnamed = 0
      const side = this.#sides.get(antenna)
      if (side) {
        this.#silent.delete(side)
        this.#disconnected.delete(antenna)
      } else if (this.#others.has(antenna) || this.#others.size < MAX_OTHERS)
        this.#others.set(antenna, (this.#others.get(antenna) ?? 0) + 1)
    }
    this.#update()
  }

  setConnected(antenna: number, isConnected: boolean): void {
    if (!this.#sides.has(antenna)) return
    if (isConnected) this.#disconnected.delete(antenna)
    else this.#disconnected.add(antenna)
    this.#update()
  }

  #update(): void {
    const detail = this.#disconnectedText() ?? this.#unnamedText() ?? this.#otherText()
    if (detail === this.#detail) return
    this.#detail = detail
    const [finding] = this.findings
    this.#put(finding ? { type: 'finding', finding } : { type: 'finding_over', code: 'reader_antenna' })
  }

  #disconnectedText(): string | null {
    if (this.#disconnected.size === 0) return null
    const names = [...this.#disconnected].map((antenna) => `antenna ${antenna} (${this.#sides.get(antenna)})`)
    return `${names.join(', ')}: not connected; check the cable`
  }

  #unnamedText(): string | null {
    return this.#unnamed < PROOF_READS
      ? null
      : 'the reads name no antenna, so the gate cannot tell inside from outside: let the reader report the antenna of each read, or remove "antennas"'
  }

  #otherText(): string | null {
    const [side] = this.#silent
    const other = [...this.#others].find(([, reads]) => reads >= PROOF_READS)?.[0]
    if (side === undefined || other === undefined) return null
    const wanted = this.#antennas[side].join(' or ')
    return `antenna ${other} reads and is not in "antennas", and no antenna of "${side}" has read yet: set "${side}": [${other}], or use antenna ${wanted} for it`
  }
}
