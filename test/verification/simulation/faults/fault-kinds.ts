import type { Chance } from '../virtual/chance.ts'

/** All kinds of faults. A seed draws none, some or all of the common faults, so that rare combinations occur. */
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
  'tills',
] as const
export type Fault = (typeof FAULTS)[number]

/** Kinds that few runs have, because they make a run longer. */
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

/** These faults are drawn from separate random streams, so that the other faults of a seed do not depend on them. */
const LIAR: Fault = 'liar'
const LIAR_SHARE = 0.06
const EMERGENCY: Fault = 'emergency'
const EMERGENCY_SHARE = 0.1
/** Tills in the shop, with their own faults. */
const TILLS: Fault = 'tills'
const TILLS_SHARE = 0.2
const DRAWN_SEPARATELY: ReadonlySet<Fault> = new Set<Fault>([LIAR, EMERGENCY, TILLS])
/** Faults that never occur together with the lying agent. */
const NEVER_WITH_LIAR: ReadonlySet<Fault> = new Set<Fault>([
  'restore',
  'rollback',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/**
 * Pairs of faults that untag cannot survive together. If cloud and agent are both restored, used rights are lost. A
 * restored cloud does not learn of later payments. An agent that enrolled after the backup must enrol again
 * (docs/guides/backup.md). If a copy is removed, its redemptions are lost.
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

/** Faults that never occur in a run with tills: a copy has the same sales, and money of tills is not the provider's. */
const NEVER_WITH_TILLS: ReadonlySet<Fault> = new Set<Fault>(['copy', 'provider', 'emergency'])

/** Share of runs with a rare fault. */
const RARE_SHARE = 0.4
/** Share of the runs with a rare fault that also have a second rare fault. */
const SECOND_RARE_SHARE = 0.3

/** Draws the faults of a seed. */
export function drawFaults(chance: Chance): Fault[] {
  const drawn = drawHonestFaults(chance)
  const isLiar = chance.fork(LIAR).happens(LIAR_SHARE) && !drawn.some((kind) => NEVER_WITH_LIAR.has(kind))
  // Not together with `copy`, because the copied agent and its copy would both drive the gate.
  const hasPanel = chance.fork(EMERGENCY).happens(EMERGENCY_SHARE) && !drawn.includes('copy')
  const others = [...drawn, ...(isLiar ? [LIAR] : []), ...(hasPanel ? [EMERGENCY] : [])]
  const hasTills = chance.fork(TILLS).happens(TILLS_SHARE) && !others.some((kind) => NEVER_WITH_TILLS.has(kind))
  return [...others, ...(hasTills ? [TILLS] : [])]
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

/** True if the name is a kind of fault. */
export function isFault(name: string): name is Fault {
  return (FAULTS as readonly string[]).includes(name)
}
