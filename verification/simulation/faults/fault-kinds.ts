import type { Chance } from '../virtual/chance.ts'

/** All faults. A seed draws some, none or all common ones, so that rare combinations occur. */
export const FAULTS = [
  'weather',
  'partition',
  'half-open',
  'broker',
  'agent-crash',
  'cloud-crash',
  'restart',
  'agent-disk',
  'cloud-disk',
  'agent-clock',
  'cloud-clock',
  'devices',
  'receiver',
  'lan',
  'home',
  'restore',
  'rollback',
  'keys',
  'provider',
  'enrol',
  'copy',
  'moves',
  'liar',
  'emergency',
] as const
export type Fault = (typeof FAULTS)[number]

/** Faults that few runs have, because they make runs longer. */
const RARE: ReadonlySet<Fault> = new Set<Fault>([
  'lan',
  'home',
  'restore',
  'rollback',
  'keys',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/** Drawn from a separate stream, so that existing seeds do not change. */
const LIAR: Fault = 'liar'
const LIAR_SHARE = 0.06
const EMERGENCY: Fault = 'emergency'
const EMERGENCY_SHARE = 0.1
const DRAWN_SEPARATELY: ReadonlySet<Fault> = new Set<Fault>([LIAR, EMERGENCY])
/** The liar has one machine and one ledger, and cannot vouch for what a lost cloud knew. */
const NEVER_WITH_LIAR: ReadonlySet<Fault> = new Set<Fault>([
  'restore',
  'rollback',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/**
 * Pairs of faults that the system cannot survive. If cloud and agent are both restored, the used rights are lost. A
 * restored cloud cannot see later payments of the provider. An agent enrolled after the backup must enrol again
 * (docs/guides/backup.md). The removal of a copy removes its redemptions.
 */
const NEVER_TOGETHER: readonly (readonly Fault[])[] = [
  ['restore', 'rollback'],
  ['restore', 'provider'],
  ['restore', 'enrol'],
  ['rollback', 'enrol'],
  ...(['restore', 'rollback', 'home', 'keys', 'enrol', 'provider', 'moves'] as const).map(
    (other) => ['copy', other] as const,
  ),
]

/** Share of runs with a rare fault. */
const RARE_SHARE = 0.4
/** Share of these with a second one. */
const SECOND_RARE_SHARE = 0.3

/** Draws the faults of a seed. */
export function drawFaults(chance: Chance): Fault[] {
  const drawn = drawHonestFaults(chance)
  const isLiar = chance.fork(LIAR).happens(LIAR_SHARE) && !drawn.some((kind) => NEVER_WITH_LIAR.has(kind))
  // Two copies of an agent would both drive the one gate.
  const hasPanel = chance.fork(EMERGENCY).happens(EMERGENCY_SHARE) && !drawn.includes('copy')
  return [...drawn, ...(isLiar ? [LIAR] : []), ...(hasPanel ? [EMERGENCY] : [])]
}

function drawHonestFaults(chance: Chance): Fault[] {
  if (chance.happens(0.05)) return []
  const density = chance.one([0.15, 0.4, 0.8])
  const common = FAULTS.filter((kind) => !DRAWN_SEPARATELY.has(kind) && !RARE.has(kind) && chance.happens(density))
  if (!chance.happens(RARE_SHARE)) return common
  const first = chance.one([...RARE])
  const second = chance.happens(SECOND_RARE_SHARE) ? chance.one([...RARE]) : first
  const isNever = NEVER_TOGETHER.some((pair) => pair.includes(first) && pair.includes(second) && first !== second)
  return [...common, ...new Set(isNever ? [first] : [first, second])]
}

/** Whether a name is a fault. */
export function isFault(name: string): name is Fault {
  return (FAULTS as readonly string[]).includes(name)
}
