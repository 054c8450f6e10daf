import type { Chance } from '../virtual/chance.ts'

/** Kinds of trouble. Each world has some of them, none or all, as its seed says: what is rare alone meets what is rare beside it. */
export const TROUBLES = [
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
export type Trouble = (typeof TROUBLES)[number]

/** Kinds that few worlds have, and mostly one of them only: they would make all of them longer. */
const RARE: ReadonlySet<Trouble> = new Set<Trouble>([
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

/** In so many worlds an enrolled agent lies: drawn apart, so that the others stay the worlds that they were. */
const LIAR: Trouble = 'liar'
const LIAR_WORLDS = 0.06
/** In so many worlds a fire panel is wired to the gate: drawn apart, too. */
const EMERGENCY: Trouble = 'emergency'
const EMERGENCY_WORLDS = 0.1
/** Drawn apart from the others. */
const APART: ReadonlySet<Trouble> = new Set<Trouble>([LIAR, EMERGENCY])
/** The liar has one machine and one ledger, and cannot vouch for what a lost cloud knew. */
const NEVER_WITH_LIAR: ReadonlySet<Trouble> = new Set<Trouble>([
  'restore',
  'rollback',
  'provider',
  'enrol',
  'copy',
  'moves',
])

/**
 * When cloud and agent are both put back nobody knows any more what was used; what a lost cloud has paid out only its provider
 * knows; and an agent that it does not know people enrol once more (docs/guides/backup.md). What a copy used goes with it when it is taken away.
 */
const NEVER_TOGETHER: readonly (readonly Trouble[])[] = [
  ['restore', 'rollback'],
  ['restore', 'provider'],
  ['restore', 'enrol'],
  ['rollback', 'enrol'],
  ...(['restore', 'rollback', 'home', 'keys', 'enrol', 'provider', 'moves'] as const).map(
    (other) => ['copy', other] as const,
  ),
]

/** How many worlds have one of the rare kinds. */
const RARE_WORLDS = 0.4
/** How many of these have another one. */
const SECOND_RARE = 0.3

/** Draws which kinds of trouble a seed has. */
export function troublesOf(chance: Chance): Trouble[] {
  const drawn = honestTroublesOf(chance)
  const isLiar = chance.fork(LIAR).happens(LIAR_WORLDS) && !drawn.some((kind) => NEVER_WITH_LIAR.has(kind))
  // Two copies of an agent would both drive the one gate.
  const hasPanel = chance.fork(EMERGENCY).happens(EMERGENCY_WORLDS) && !drawn.includes('copy')
  return [...drawn, ...(isLiar ? [LIAR] : []), ...(hasPanel ? [EMERGENCY] : [])]
}

function honestTroublesOf(chance: Chance): Trouble[] {
  if (chance.happens(0.05)) return []
  const density = chance.one([0.15, 0.4, 0.8])
  const common = TROUBLES.filter((kind) => !APART.has(kind) && !RARE.has(kind) && chance.happens(density))
  if (!chance.happens(RARE_WORLDS)) return common
  const first = chance.one([...RARE])
  const second = chance.happens(SECOND_RARE) ? chance.one([...RARE]) : first
  const isNever = NEVER_TOGETHER.some((pair) => pair.includes(first) && pair.includes(second) && first !== second)
  return [...common, ...new Set(isNever ? [first] : [first, second])]
}

/** Whether a word names a kind of trouble. */
export function isTrouble(name: string): name is Trouble {
  return (TROUBLES as readonly string[]).includes(name)
}
