import type { Clock } from '../../../policy/platform.ts'
import { tagNameOf } from './tags/deduplicate.ts'
import type { TagAssessment } from './assess-tag.ts'

/** What a gate observed of one tag during a walk. */
interface WalkedTag {
  readonly epc?: string
  readonly tagUid?: string
  readonly reads: number
  readonly antennas: readonly number[]
  /** How the gate assessed the tag when it last left. Null if the gate did not see it leave. */
  readonly left: Pick<TagAssessment, 'reason' | 'severity'> | null
}

/** The recording of one walk through a gate. */
export interface WalkRecording {
  readonly deviceId: string
  readonly isOver: boolean
  readonly tags: readonly WalkedTag[]
}

/** Records what gates observe during timed walks. Each gate keeps its last recording. */
export interface WalkRecorder {
  start(deviceId: string, seconds: number): void
  /** True until the time of the last walk is over, or a tag has left. At most one walk is under way at an agent. */
  isUnderWay(): boolean
  recording(deviceId: string): WalkRecording | undefined
  onRead(deviceId: string, tag: string, antenna: number | undefined): void
  onAssessed(deviceId: string, tag: string, assessment: TagAssessment): void
}

/** Maximum number of tags in one recording. The recorder ignores further tags. */
export const WALK_TAG_LIMIT = 200

interface Observed {
  reads: number
  antennas: Set<number>
  left: WalkedTag['left']
}

/** Opens a recorder without recordings. */
export function openWalkRecorder(clock: Pick<Clock, 'elapsed'>): WalkRecorder {
  const walks = new Map<string, { endsMs: number; tags: Map<string, Observed> }>()

  function observed(deviceId: string, tag: string): Observed | undefined {
    const walk = walks.get(deviceId)
    if (!walk || clock.elapsed() >= walk.endsMs) return undefined
    const known = walk.tags.get(tag)
    if (known || walk.tags.size >= WALK_TAG_LIMIT) return known
    const added: Observed = { reads: 0, antennas: new Set(), left: null }
    walk.tags.set(tag, added)
    return added
  }

  return {
    start(deviceId, seconds) {
      walks.set(deviceId, { endsMs: clock.elapsed() + seconds * 1_000, tags: new Map() })
    },
    isUnderWay: () =>
      [...walks.values()].some(
        ({ endsMs, tags }) => clock.elapsed() < endsMs && [...tags.values()].every(({ left }) => left === null),
      ),
    recording(deviceId) {
      const walk = walks.get(deviceId)
      return (
        walk && {
          deviceId,
          isOver: clock.elapsed() >= walk.endsMs,
          tags: [...walk.tags].map(([tag, { reads, antennas, left }]) => ({
            ...tagNameOf(tag),
            reads,
            antennas: [...antennas].toSorted((a, b) => a - b),
            left,
          })),
        }
      )
    },
    onRead(deviceId, tag, antenna) {
      const seen = observed(deviceId, tag)
      if (!seen) return
      seen.reads++
      if (antenna !== undefined) seen.antennas.add(antenna)
    },
    onAssessed(deviceId, tag, { reason, severity }) {
      const seen = observed(deviceId, tag)
      if (seen) seen.left = { reason, severity }
    },
  }
}
